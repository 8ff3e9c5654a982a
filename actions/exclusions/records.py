"""How rules are made, changed and deleted: the one door for the API, the console and the commands.

In the transaction of each change the mark of all rules is renewed, so that whoever keeps them in memory reads them
anew before another action begins, and history tells who did it.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any

from django.db import transaction
from django.utils import timezone

from actions.exclusions.kinds import names_of
from actions.exclusions.models import Exclusion, ExclusionRevision
from actions.exclusions.reading import read_attributes
from cluster.named_records import lock, save
from watcher_site.history import differences, record
from watcher_site.refusals import Invalid, NotFound

WRITABLE = ("name", "reason", "owner", "action_types", "targets", "window", "zone", "expires_at", "enabled")


@transaction.atomic
def create_exclusion(attributes: Mapping[str, Any], by: str) -> Exclusion:
    """Make a rule, which is heeded from the moment that this is committed.

    Args:
        attributes: those of `WRITABLE` that people name, as `read_attributes` reads them.
        by: the name of the person, who owns it where nobody else is named.

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
    """Change some attributes of a rule, and return it as it is then; what is left out stays.

    Raises:
        Invalid, Conflict: as `create_exclusion`.
        NotFound: it was deleted meanwhile.
    """
    standing = lock(exclusion)
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
    standing = lock(exclusion)
    Exclusion.objects.filter(pk=standing.pk).soft_delete()
    ExclusionRevision.renew()
    record("exclusion.delete", standing, details=told(described(standing)))


def described(exclusion: Exclusion) -> dict[str, Any]:
    """Return all that a rule says, as JSON has it."""
    said = {name: getattr(exclusion, name) for name in WRITABLE}
    return {**said, "expires_at": exclusion.expires_at and exclusion.expires_at.isoformat()}


def told(said: dict[str, Any]) -> dict[str, Any]:
    """Return what history tells of a rule: the things that it names by the names that they have now, too."""
    named = {
        kind: [name if name == identifier else f"{name} ({identifier})" for identifier, name in found.items()]
        for kind, found in names_of(said["targets"]).items()
    }
    return {**said, "targets": named}
