"""Create, change and delete rules, for the API, the console and the commands.

The transaction of each change renews the mark of the rules, so that processes which cache them read them again before
the next action begins, and records the change in history.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any

from django.db import transaction
from django.utils import timezone

from actions.exclusions.targets import names_of
from actions.exclusions.validation import read_attributes
from actions.models.exclusions import Exclusion, ExclusionRevision
from cluster.operations.named_records import save
from watcher_site.database.locks import lock_present
from watcher_site.history import differences, record
from watcher_site.refusals import Invalid, NotFound

WRITABLE = ("name", "reason", "owner", "action_types", "targets", "window", "zone", "expires_at", "enabled")


@transaction.atomic
def create_exclusion(attributes: Mapping[str, Any], by: str) -> Exclusion:
    """Create a rule, which is in force from the commit on.

    Args:
        attributes: the given attributes of `WRITABLE`, as `read_attributes` returns them.
        by: the name of the person, who is the default for the owner.

    Raises:
        Invalid: the message names the field and the rule that it breaks.
        Conflict: another one has the name.
    """
    exclusion = drafted(attributes, by)
    save(exclusion, details=told(described(exclusion)))
    ExclusionRevision.renew()
    return exclusion


def find_exclusion(identifier: str) -> Exclusion:
    """Return the rule of this UUID or name. Raises: `NotFound`."""
    found: Exclusion | None = Exclusion.objects.present().named(identifier).first()
    if found is None:
        raise NotFound(f"Exclusion {identifier} could not be found")
    return found


def drafted(attributes: Mapping[str, Any], by: str) -> Exclusion:
    """Return a rule that is not saved: to be tried, or to be saved. Raises: `Invalid`."""
    if strays := attributes.keys() - set(WRITABLE):
        raise Invalid(f"{min(strays)}: an exclusion has no such attribute.")
    if not attributes.get("name"):
        raise Invalid("name: missing. An exclusion needs a name.")
    exclusion = Exclusion()
    read_attributes(exclusion, {**attributes, "owner": attributes.get("owner") or by}, timezone.now())
    return exclusion


def redrafted(exclusion: Exclusion, changes: Mapping[str, Any], by: str) -> Exclusion:
    """Return a rule as these changes would leave it, which are not saved. Raises: `Invalid`."""
    if strays := changes.keys() - set(WRITABLE):
        raise Invalid(f"{min(strays)}: cannot be changed.")
    changed = copy(exclusion)
    wanted = {**changes, "owner": changes["owner"] or by} if "owner" in changes else changes
    read_attributes(changed, wanted, timezone.now())
    return changed


@transaction.atomic
def change_exclusion(exclusion: Exclusion, attributes: Mapping[str, Any], by: str) -> Exclusion:
    """Change attributes of a rule, and return the changed rule. Attributes left out stay as they are.

    Raises:
        Invalid, Conflict: as `create_exclusion`.
        NotFound: it was deleted meanwhile.
    """
    standing = lock_present(exclusion)
    changed = redrafted(standing, attributes, by)
    before, after = described(standing), described(changed)
    if changes := [name for name in WRITABLE if after[name] != before[name]]:
        save(changed, changes, differences(told(before), told(after)))
        ExclusionRevision.renew()
    return changed


@transaction.atomic
def delete_exclusion(exclusion: Exclusion) -> None:
    """Delete a rule. What it skipped stays skipped, and can be restored while nothing of the plan has begun.

    Raises:
        NotFound: somebody else deleted it.
    """
    standing = lock_present(exclusion)
    Exclusion.objects.filter(pk=standing.pk).soft_delete()
    ExclusionRevision.renew()
    record("exclusion.delete", standing, details=told(described(standing)))


def described(exclusion: Exclusion) -> dict[str, Any]:
    """Return all that a rule says, as JSON has it."""
    said = {name: getattr(exclusion, name) for name in WRITABLE}
    return {**said, "expires_at": exclusion.expires_at and exclusion.expires_at.isoformat()}


def told(said: dict[str, Any]) -> dict[str, Any]:
    """Return the details of a rule for history, with the current names of its targets."""
    named = {
        kind: [name if name == identifier else f"{name} ({identifier})" for identifier, name in found.items()]
        for kind, found in names_of(said["targets"]).items()
    }
    return {**said, "targets": named}
