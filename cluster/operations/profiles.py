"""Create, change and delete profiles, for the API, the console and the commands."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.template.defaultfilters import pluralize

from cluster import messages
from cluster.drivers import server_properties
from cluster.drivers.quotas import require_metadata_quota
from cluster.models import Cluster, ComputeNode, Flavor, Node, Profile
from cluster.models.clusters import NAME_LENGTH
from cluster.operations.named_records import save
from watcher_site.accounts.projects import checked_project
from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.history import differences, record
from watcher_site.refusals import Conflict, Invalid
from watcher_site.validation import Draft202012Validator, find_violation

SPEC = {
    "type": "object",
    "properties": {
        "flavor": {"type": "string", "minLength": 1, "maxLength": 255},
        "image": {"type": ["string", "null"], "minLength": 1, "maxLength": 255},
        # In Nova's format.
        "metadata": {
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": 255},
            "additionalProperties": {"type": "string", "maxLength": 255},
        },
        "availability_zone": {"type": ["string", "null"], "minLength": 1, "maxLength": 255},
        **server_properties.PROPERTIES,
    },
    "required": ["flavor"],
    "additionalProperties": False,
}
VALIDATOR = Draft202012Validator(SPEC)
CHANGEABLE = ("name", "metadata")


def create_profile(name: str, spec: Any, metadata: Any = None, project_id: str = "") -> Profile:
    """Create a profile.

    Args:
        project_id: the project that may use it; empty for all projects. spec: an object with ``flavor`` (the id or
        name of a flavor in the site's table), ``image``, ``metadata`` (texts),
            ``availability_zone``, and the properties of `cluster.drivers.server_properties`.
        metadata: any object.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another profile of the project has the name.
    """
    profile = Profile(
        name=checked_name(name),
        spec=checked_spec(spec),
        metadata=checked_metadata(metadata),
        project_id=checked_project(project_id) if project_id else "",
    )
    hidden = server_properties.NOT_RECORDED
    save(profile, details={"spec": {name: value for name, value in profile.spec.items() if name not in hidden}})
    return profile


@transaction.atomic
def change_profile(profile: Profile, changes: Mapping[str, Any]) -> Profile:
    """Change the name or the metadata of a profile. Its description of servers cannot change.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another profile has the name.
        NotFound: it was deleted meanwhile.
    """
    locked = lock_present(profile)
    before = {name: getattr(locked, name) for name in CHANGEABLE}
    if unchangeable := changes.keys() - set(CHANGEABLE):
        raise Invalid(f"{min(unchangeable)}: cannot be changed; {' and '.join(CHANGEABLE)} can.")
    if "name" in changes:
        locked.name = checked_name(changes["name"])
    if "metadata" in changes:
        locked.metadata = checked_metadata(changes["metadata"])
    save(locked, list(changes), differences(before, {name: getattr(locked, name) for name in changes}))
    return locked


@transaction.atomic
def delete_profile(profile: Profile) -> None:
    """Delete a profile that no node or cluster uses.

    Raises:
        Conflict: nodes or clusters use it.
        NotFound: it was deleted meanwhile.
    """
    locked = lock_present(profile)
    for model, noun in ((Node, "node"), (Cluster, "cluster")):
        if number := model.objects.present().filter(profile=locked).count():
            raise Conflict(
                messages.IN_USE.fill(kind="Profile", uuid=profile.uuid, users=f"{number} {noun}{pluralize(number)}")
            )
    Profile.objects.filter(pk=locked.pk).soft_delete()
    record("profile.delete", locked)


def checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise Invalid("name: must be a text.")
    require_storable("name", name)
    if not 0 < len(name.strip()) <= NAME_LENGTH:
        raise Invalid(messages.PROFILE_NAME.fill(number=NAME_LENGTH))
    return name.strip()


def checked_metadata(metadata: Any) -> dict[str, Any]:
    if metadata is not None and not isinstance(metadata, Mapping):
        raise Invalid("metadata: must be an object.")
    require_storable("metadata", metadata)
    return dict(metadata or {})


def checked_spec(spec: Any) -> dict[str, Any]:
    require_storable("spec", spec)
    if violation := find_violation(VALIDATOR, spec):
        raise Invalid(f"spec: {violation}")
    if flaw := server_properties.find_property_flaw(spec):
        raise Invalid(f"spec: {flaw}")
    require_metadata_quota(spec.get("metadata"))
    flavor = spec["flavor"]
    if not Flavor.objects.present().filter(Q(flavor_id=flavor) | Q(name=flavor)).exists():
        raise Invalid(messages.NO_FLAVOR_OF_SPEC.fill(name=flavor))
    zone = spec.get("availability_zone")
    if zone and not ComputeNode.objects.present().filter(zone=zone).exists():
        raise Invalid(messages.NO_ZONE_OF_SPEC.fill(name=zone))
    return dict(spec)
