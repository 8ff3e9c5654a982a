"""Nova's operations on servers: each read of the server advances its operation by one step."""

import json
from typing import Any
from uuid import uuid4

from werkzeug import Request, Response
from werkzeug.exceptions import BadRequest, Conflict, NotFound

HOST, VM_STATE, TASK_STATE = "OS-EXT-SRV-ATTR:host", "OS-EXT-STS:vm_state", "OS-EXT-STS:task_state"
LAUNCHED = "OS-SRV-USG:launched_at"
RUNNING = {"status": "ACTIVE", VM_STATE: "active"}
BROKE = "The hypervisor broke."
NO_VALID_HOST = "No valid host was found. There are not enough hosts available."


class Operations:
    """Operations fail if ``failing`` is ``stay`` (the server is unchanged) or ``error`` (the server is in error)."""

    flavors: dict[str, dict[str, Any]]
    services: dict[str, dict[str, Any]]

    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud
        self.servers: dict[str, dict[str, Any]] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.evacuations: list[dict[str, Any]] = []
        self.bodies: list[dict[str, Any]] = []
        """The bodies of the requests for operations."""
        self.failing: str | None = None
        self.unknown_images: set[str] = set()
        self.confirms_automatically = False

    def embed(self, flavor: str) -> dict[str, Any]:
        raise NotImplementedError

    def version(self, request: Request) -> tuple[int, ...]:
        raise NotImplementedError

    def find(self, server: str) -> dict[str, Any]:
        if server not in self.servers:
            raise NotFound(f"Instance {server} could not be found.")
        return self.servers[server]

    def actions(self, server: str) -> list[dict[str, Any]]:
        self.find(server)
        return self.history.get(server, [])

    def act(self, request: Request, server: str) -> Response:
        found, (verb, options) = self.find(server), next(iter(request.get_json().items()))
        verbs = {
            "os-migrateLive": self.live_migrate,
            "migrate": self.migrate,
            "resize": self.resize,
            "confirmResize": self.confirm,
            "os-stop": self.stop,
            "os-start": self.start,
            "reboot": self.reboot,
            "rebuild": self.rebuild,
            "os-resetState": self.reset_state,
            "evacuate": self.evacuate,
        }
        self.bodies.append(request.get_json())
        verbs[verb](found, options or {})
        if verb == "evacuate" and self.version(request) >= (2, 95):
            self.operations[server]["changes"] |= {"status": "SHUTOFF", VM_STATE: "stopped"}
        if verb == "rebuild":
            return Response(json.dumps({"server": found}), 202, content_type="application/json")
        return Response(status=202)

    def require(self, server: dict[str, Any], verb: str, *statuses: str) -> None:
        if server[TASK_STATE]:
            raise Conflict(f"Cannot '{verb}' instance {server['id']} while it is in task_state {server[TASK_STATE]}")
        if server["status"] not in statuses:
            raise Conflict(f"Cannot '{verb}' instance {server['id']} while it is in vm_state {server[VM_STATE]}")

    def begin(self, server: dict[str, Any], verb: str, status: str, task_state: str, changes: dict[str, Any]) -> None:
        number = len(self.history.setdefault(server["id"], [])) + 1
        entry = {"action": verb, "request_id": f"req-{number:04}-{server['id']}", "message": None}
        entry["events"] = [{"event": f"compute_{verb}", "result": None}]
        self.history[server["id"]].insert(0, entry)
        before = {name: server[name] for name in ("status", VM_STATE)}
        operation = {"left": self.cloud.readings, "verb": verb, "before": before, "changes": changes}
        self.operations[server["id"]] = operation
        server["status"], server[TASK_STATE] = status, task_state

    def choose(self, server: dict[str, Any], wanted: str | None) -> str | None:
        """Return the requested host, or the first other host that is enabled and up."""
        hosts = {service["host"]: service for service in self.services.values()}
        if wanted and wanted not in hosts:
            raise BadRequest(f"Compute host {wanted} could not be found.")
        fit = [h for h, s in hosts.items() if (s["status"], s["state"]) == ("enabled", "up") and h != server[HOST]]
        return next((host for host in sorted(fit) if wanted in {None, host}), None)

    def live_migrate(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        self.require(server, "os-migrateLive", "ACTIVE", "PAUSED")
        host = self.choose(server, options.get("host"))
        if host is None:
            raise BadRequest(NO_VALID_HOST)
        self.begin(server, "live-migration", "MIGRATING", "migrating", {HOST: host})

    def migrate(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        self.require(server, "migrate", "ACTIVE", "SHUTOFF")
        self.begin_resize(server, "migrate", {HOST: self.choose(server, options.get("host"))})

    def resize(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        self.require(server, "resize", "ACTIVE", "SHUTOFF")
        if options["flavorRef"] not in self.flavors:
            raise BadRequest(f"Flavor {options['flavorRef']} could not be found.")
        flavor = self.embed(options["flavorRef"])
        if flavor == server["flavor"]:
            raise BadRequest("When resizing, instances must change flavor!")
        self.begin_resize(server, "resize", {HOST: self.choose(server, None), "flavor": flavor})

    def begin_resize(self, server: dict[str, Any], verb: str, changes: dict[str, Any]) -> None:
        changes |= {"status": "VERIFY_RESIZE", VM_STATE: "resized"}
        self.begin(server, verb, "RESIZE", "resize_prep", changes)

    def confirm(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        self.require(server, "confirmResize", "VERIFY_RESIZE")
        self.settle(server, server.pop("old"))

    def stop(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        self.require(server, "stop", "ACTIVE")
        self.begin(server, "stop", "ACTIVE", "powering-off", {"status": "SHUTOFF", VM_STATE: "stopped"})

    def start(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        self.require(server, "start", "SHUTOFF")
        self.begin(server, "start", "SHUTOFF", "powering-on", RUNNING)

    def reboot(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        is_hard = options["type"] == "HARD"
        self.require_launched(server, "reboot")
        self.require(server, "reboot", "ACTIVE", *(["SHUTOFF", "PAUSED", "ERROR"] if is_hard else []))
        self.begin(
            server,
            "reboot",
            "HARD_REBOOT" if is_hard else "REBOOT",
            "rebooting_hard" if is_hard else "rebooting",
            RUNNING,
        )

    def rebuild(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        self.require_launched(server, "rebuild")
        self.require(server, "rebuild", "ACTIVE", "SHUTOFF", "ERROR")
        if options["imageRef"] in self.unknown_images:
            raise BadRequest("Cannot find image for rebuild")
        after = {"status": "SHUTOFF", VM_STATE: "stopped"} if server["status"] == "SHUTOFF" else RUNNING
        self.begin(server, "rebuild", "REBUILD", "rebuild_spawning", {**after, "image": {"id": options["imageRef"]}})

    def evacuate(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        if any(found["host"] == server[HOST] and found["state"] == "up" for found in self.services.values()):
            raise BadRequest(f"Compute service of {server[HOST]} is still in use.")
        self.require(server, "evacuate", "ACTIVE", "SHUTOFF", "ERROR")
        host = self.choose(server, options.get("host"))
        after = {"status": "SHUTOFF", VM_STATE: "stopped"} if server["status"] == "SHUTOFF" else RUNNING
        self.begin(server, "evacuate", "REBUILD", "rebuilding", {HOST: host, **after})
        number = len(self.evacuations) + 1
        record = {"id": number, "instance_uuid": server["id"], "migration_type": "evacuation", "status": "accepted"}
        self.evacuations.append(record | {"created_at": f"2026-03-01T10:00:{number % 60:02}.000000"})
        if host is None:
            fault = {"code": 500, "message": NO_VALID_HOST}
            self.operations[server["id"]]["before"] |= {"status": "ERROR", VM_STATE: "error", "fault": fault}

    def reset_state(self, server: dict[str, Any], options: dict[str, Any]) -> None:
        server |= {VM_STATE: options["state"], "status": options["state"].upper(), TASK_STATE: None}

    def set_metadata(self, request: Request, server: str) -> Any:
        self.require(self.find(server), "update metadata", "ACTIVE", "PAUSED", "SUSPENDED", "SHUTOFF")
        self.find(server)["metadata"] |= request.get_json()["metadata"]
        return {"metadata": self.find(server)["metadata"]}

    def delete_metadata(self, request: Request, server: str, key: str) -> Any:
        self.require(self.find(server), "delete metadata", "ACTIVE", "PAUSED", "SUSPENDED", "SHUTOFF")
        if self.find(server)["metadata"].pop(key, None) is None:
            raise NotFound(f"Metadata item {key} was not found")
        return Response(status=204)

    def require_launched(self, server: dict[str, Any], verb: str) -> None:
        if not server[LAUNCHED]:
            raise Conflict(f"Instance {server['id']} is in an invalid state for '{verb}'")

    def build(self, wanted: dict[str, Any], project: str, user: str) -> Response:
        """Add a server in status BUILD, whose creation on the first available host begins."""
        if wanted["flavorRef"] not in self.flavors:
            raise BadRequest(f"Flavor {wanted['flavorRef']} could not be found.")
        key = str(uuid4())
        server = self.servers[key] = {
            "id": key,
            "name": wanted["name"],
            "tenant_id": project,
            "user_id": user,
            "metadata": wanted["metadata"],
            "image": {"id": wanted["imageRef"]},
            "flavor": self.embed(wanted["flavorRef"]),
            "created": "2026-03-01T10:00:00Z",
            "locked": False,
            "status": "BUILD",
            HOST: None,
            VM_STATE: "building",
            TASK_STATE: None,
            LAUNCHED: None,
            "os-extended-volumes:volumes_attached": [],
            "pinned_availability_zone": wanted.get("availability_zone"),
        }
        host = self.choose(server, wanted.get("host"))
        self.begin(server, "create", "BUILD", "scheduling", {HOST: host, LAUNCHED: server["created"], **RUNNING})
        self.operations[key]["before"] |= {"status": "ERROR", VM_STATE: "error"}
        if host is None:
            self.operations[key]["before"]["fault"] = {"code": 500, "message": NO_VALID_HOST}
        return Response(json.dumps({"server": {"id": key}}), 202, content_type="application/json")

    def delete_server(self, request: Request, server: str) -> Response:
        found = self.find(server)
        if (self.operations.get(server) or {}).get("verb") != "delete":
            self.begin(found, "delete", found["status"], "deleting", {})
        return Response(status=204)

    def advance(self, server: dict[str, Any]) -> None:
        operation = self.operations.get(server["id"])
        if operation:
            operation["left"] -= 1
            if operation["left"] <= 0:
                self.finish(server, self.operations.pop(server["id"]))

    def finish(self, server: dict[str, Any], operation: dict[str, Any]) -> None:
        server[TASK_STATE] = None
        if operation["verb"] == "evacuate" and not self.end_evacuation(server, operation):
            return
        if operation["verb"] == "delete" and not self.failing:
            del self.servers[server["id"]]
            raise NotFound(f"Instance {server['id']} could not be found.")
        changes, before = operation["changes"], operation["before"]
        if changes.get(HOST, "") is None:
            self.note(server, NO_VALID_HOST)
            self.settle(server, before)
        elif self.failing:
            self.note(server, "The hypervisor did not do it.")
            bad = {"status": "ERROR", VM_STATE: "error", "fault": {"code": 500, "message": BROKE}}
            self.settle(server, bad if self.failing == "error" else before)
        else:
            self.note(server)
            server.update(before | changes)
            if server["status"] == "VERIFY_RESIZE":
                server["old"] = before
                if self.confirms_automatically:
                    self.confirm(server, {})

    def end_evacuation(self, server: dict[str, Any], operation: dict[str, Any]) -> bool:
        """Return whether an evacuation has ended: a successful one changes the host one step after the state."""
        changes, [*_, record] = operation["changes"], self.evacuations_of(server["id"])
        fails = changes[HOST] is None or self.failing
        if fails or "status" not in changes:
            record["status"] = "failed" if fails else "done"
            return True
        server |= {name: changes.pop(name) for name in RUNNING}
        self.operations[server["id"]] = {**operation, "left": 1, "before": {}}
        return False

    def evacuations_of(self, server: str | None) -> list[dict[str, Any]]:
        return [record for record in self.evacuations if record["instance_uuid"] == server]

    def list_evacuations(self, request: Request) -> Any:
        """Return the evacuations after another step, so that an earlier read of the server is outdated."""
        server = request.args["instance_uuid"]
        assert request.args["migration_type"] == "evacuation"
        self.advance(self.find(server))
        return {"migrations": self.evacuations_of(server)}

    def settle(self, server: dict[str, Any], columns: dict[str, Any]) -> None:
        server.update({**columns, TASK_STATE: None})

    def note(self, server: dict[str, Any], details: str | None = None) -> None:
        """Record the end of the last action and the reason of its failure, which are shown from the second read on."""
        result = "Error" if details else "Success"
        self.history[server["id"]][0]["end"] = {"result": result, "details": details}

    def read_action(self, entry: dict[str, Any]) -> dict[str, Any]:
        seen = {name: entry[name] for name in ("action", "request_id", "message", "events")}
        if end := entry.pop("end", None):
            entry["message"] = "Error" if end["details"] else None
            entry["events"] = [entry["events"][0] | end]
        return seen

    def list_migrations(self, request: Request, server: str) -> Any:
        self.find(server)
        running = self.operations.get(server)
        if not running or running["verb"] != "live-migration":
            return {"migrations": []}
        return {"migrations": [{"id": 7, "status": "running", "server_uuid": server}]}

    def abort_migration(self, request: Request, server: str, migration: str) -> Response:
        found, running = self.find(server), self.operations.get(server)
        if not running or running["verb"] != "live-migration":
            raise BadRequest(f"Migration {migration} state of instance {server} is completed.")
        self.operations.pop(server)
        self.note(found)
        self.settle(found, running["before"])
        return Response(status=202)
