"""Have a server built anew: from its image, or for the first time."""

from actions.types.base import UUID_SCHEMA, Outcome, Recovery
from actions.types.servers.build import Build
from cluster.drivers.base import cloud

BUILDS = "builds"


class Rebuild(Build):
    """As Nova's rebuild, which a server that found no host is asked for as well (seed 2)."""

    name = "rebuild"
    description = "Rebuild a server, or build one that has not run yet"
    schema = {
        "type": "object",
        "properties": {
            "resource_id": UUID_SCHEMA,
            "resource_name": {"type": "string"},
            "image": {"type": ["string", "null"], "minLength": 1, "maxLength": 255},
        },
        "required": ["resource_id"],
        "additionalProperties": False,
    }

    def pre_condition(self) -> None:
        self.server_to_act_on()

    def build(self) -> None:
        if self.is_to_be_built():
            cloud().build_server(self.server)
        else:
            cloud().rebuild_server(self.server, self.input_parameters.get("image"))

    def is_to_be_built(self) -> bool:
        """Say whether it had never run when this action first looked: from then on that is settled."""
        if BUILDS not in self.context.data:
            self.context.save_data({BUILDS: not cloud().find_server(self.server).has_run})
        return bool(self.context.data[BUILDS])

    def foresee(self) -> Outcome:
        return self.execute()

    def recover(self) -> Recovery:
        """A server that is rebuilt twice is as one that is rebuilt once; one that was just built need not be."""
        found = self.find()
        is_done = found is None or (self.context.data.get(BUILDS) and found.has_run)
        return Recovery.DONE if is_done else Recovery.AGAIN
