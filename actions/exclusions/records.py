"""Creating, changing, checking and deleting rules, for the API, the console and the commands.

The transaction of each change sets a new mark of the rules, so that processes with cached rules read them again before
the next action begins, and records the change in history.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from actions import messages
from actions.exclusions.targets import KINDS, identify, names_of
from actions.models.exclusions import NAME_LENGTH, TEXT_LENGTH, Exclusion, ExclusionRevision
from cluster.operations.named_records import save
from watcher_site import plugins
from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.history import differences, record
from watcher_site.refusals import Invalid, NotFound
from watcher_site.validation import require_addressable_name
from watcher_site.windows.wall_clock import read_moment, read_window, read_zone, serialize_window

WRITABLE = ("name", "reason", "owner", "action_types", "targets", "window", "zone", "expires_at", "enabled")
MAX_TARGETS = 1000
"""The maximum number of targets of a kind in a rule."""
RESERVED_NAMES = ("detail", "try")


@transaction.atomic
def create_exclusion(attributes: Mapping[str, Any], by: str) -> Exclusion:
    """Create a rule, which is in force after the commit.

    Args:
        attributes: the given attributes of `WRITABLE`.
        by: the name of the user, who is the default owner.

    Raises:
        Invalid: an attribute is not valid; the message names it and the reason.
        Conflict: another rule has the name.
    """
    exclusion = draft_exclusion(attributes, by)
    save(exclusion, details=details_of(attributes_of(exclusion)))
    ExclusionRevision.renew()
    return exclusion


def find_exclusion(identifier: str) -> Exclusion:
    """Return the rule with this UUID or name. Raises: `NotFound`."""
    exclusion: Exclusion | None = Exclusion.objects.present().named(identifier).first()
    if exclusion is None:
        raise NotFound(f"Exclusion {identifier} could not be found")
    return exclusion


def draft_exclusion(attributes: Mapping[str, Any], by: str) -> Exclusion:
    """Return an unsaved new rule. Raises: `Invalid`."""
    if strays := attributes.keys() - set(WRITABLE):
        raise Invalid(f"{min(strays)}: an exclusion has no such attribute.")
    if not attributes.get("name"):
        raise Invalid(messages.EXCLUSION_WITHOUT_NAME.text)
    exclusion = Exclusion()
    read_attributes(exclusion, {**attributes, "owner": attributes.get("owner") or by}, timezone.now())
    return exclusion


def draft_change(exclusion: Exclusion, changes: Mapping[str, Any], by: str) -> Exclusion:
    """Return a copy of a rule with unsaved changes. Raises: `Invalid`."""
    if strays := changes.keys() - set(WRITABLE):
        raise Invalid(f"{min(strays)}: cannot be changed.")
    changed = copy(exclusion)
    values = {**changes, "owner": changes["owner"] or by} if "owner" in changes else changes
    read_attributes(changed, values, timezone.now())
    return changed


@transaction.atomic
def change_exclusion(exclusion: Exclusion, attributes: Mapping[str, Any], by: str) -> Exclusion:
    """Change attributes of a rule, and return the changed rule. Missing attributes do not change.

    Raises:
        Invalid, Conflict: as `create_exclusion`.
        NotFound: the rule was deleted meanwhile.
    """
    locked = lock_present(exclusion)
    changed = draft_change(locked, attributes, by)
    before, after = attributes_of(locked), attributes_of(changed)
    if changes := [name for name in WRITABLE if after[name] != before[name]]:
        save(changed, changes, differences(details_of(before), details_of(after)))
        ExclusionRevision.renew()
    return changed


@transaction.atomic
def delete_exclusion(exclusion: Exclusion) -> None:
    """Delete a rule. Actions that it skipped stay skipped, and can be restored before their plan begins.

    Raises:
        NotFound: the rule was deleted meanwhile.
    """
    locked = lock_present(exclusion)
    Exclusion.objects.filter(pk=locked.pk).soft_delete()
    ExclusionRevision.renew()
    record("exclusion.delete", locked, details=details_of(attributes_of(locked)))


def attributes_of(exclusion: Exclusion) -> dict[str, Any]:
    """Return the attributes of a rule as JSON values."""
    values = {name: getattr(exclusion, name) for name in WRITABLE}
    return {**values, "expires_at": exclusion.expires_at and exclusion.expires_at.isoformat()}


def details_of(values: dict[str, Any]) -> dict[str, Any]:
    """Return the details of a rule for history, with the current names of its targets."""
    targets = {
        kind: [
            name if name == identifier else f"{name} ({identifier})"
            for identifier, name in names_by_identifier.items()
        ]
        for kind, names_by_identifier in names_of(values["targets"]).items()
    }
    return {**values, "targets": targets}


def read_attributes(exclusion: Exclusion, attributes: Mapping[str, Any], now: datetime) -> None:
    """Set attributes of a rule from user input. Missing attributes do not change, and null resets an attribute.

    Raises:
        Invalid: the message names the invalid attribute and the reason.
    """
    for name, length in (("name", NAME_LENGTH), ("owner", TEXT_LENGTH), ("reason", TEXT_LENGTH)):
        if name in attributes:
            setattr(exclusion, name, read_line(name, attributes[name], length, least=int(name != "reason")))
    if "name" in attributes:
        require_addressable_name(exclusion.name, RESERVED_NAMES)
    if "enabled" in attributes:
        exclusion.enabled = read_boolean(attributes["enabled"])
    if "action_types" in attributes:
        exclusion.action_types = read_action_types(attributes["action_types"])
    if "targets" in attributes:
        exclusion.targets = read_targets(attributes["targets"], exclusion.targets)
    if attributes.keys() & {"window", "zone", "expires_at"}:
        read_times(exclusion, attributes, now)


def find_mistakes(exclusion: Exclusion, attributes: Mapping[str, Any], now: datetime) -> list[str]:
    """Return all errors of user input. `read_attributes` raises only the first one."""
    mistakes: dict[str, None] = {}
    for part in split_attributes(attributes):
        try:
            read_attributes(copy(exclusion), part, now)
        except Invalid as problem:
            mistakes[str(problem)] = None
    return list(mistakes)


def split_attributes(attributes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of the attributes to check separately; zone, window and expiry are also checked together."""
    for name, value in attributes.items():
        if name == "targets":
            yield from ({name: {kind: targets}} for kind, targets in value.items())
        elif name in ("window", "expires_at") and "zone" in attributes:
            yield {name: value, "zone": attributes["zone"]}
        else:
            yield {name: value}
    yield {name: attributes[name] for name in ("zone", "window", "expires_at") if name in attributes}


def read_line(name: str, text: Any, longest: int, least: int) -> str:
    if text is None and not least:
        return ""
    if not isinstance(text, str):
        raise Invalid(f"{name}: must be a text.")
    require_storable(name, text)
    line = " ".join(text.split())
    if not least <= len(line) <= longest:
        raise Invalid(messages.LINE_LENGTH.fill(field=name, least=least, most=longest))
    return line


def read_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Invalid("enabled: must be true or false.")
    return value


def read_action_types(names: Any) -> list[str]:
    types = plugins.load("ACTION_TYPES")
    if not isinstance(names, list | None):
        raise Invalid("action_types: must be a list of action types; an empty one means all of them.")
    for name in names or []:
        if not isinstance(name, str) or name not in types:
            raise Invalid(messages.NO_ACTION_TYPE.fill(name=name, names=", ".join(sorted(types))))
    return sorted(set(names or []))


def read_targets(targets: Any, current_targets: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the targets of a rule by kind. Known targets are not looked up, because they may have been deleted.

    Raises:
        Invalid: the kind or an object does not exist.
    """
    if not isinstance(targets, Mapping | None):
        raise Invalid("targets: must be an object of lists.")
    identifiers = {}
    for kind, names in (targets or {}).items():
        if kind not in KINDS:
            raise Invalid(f"targets: there is no kind {kind}; there are {', '.join(KINDS)}.")
        if not isinstance(names, list | None) or len(names or []) > MAX_TARGETS:
            raise Invalid(messages.TOO_MANY_TARGETS.fill(kind=kind, number=MAX_TARGETS, form=KINDS[kind][1]))
        if names == []:
            raise Invalid(f"targets.{kind}: must not be empty; left out, the rule is not about any of that kind.")
        current = current_targets.get(kind, [])
        unchanged = [name for name in names or [] if name in current]
        new_names = [name for name in names or [] if name not in current]
        identifiers[kind] = sorted({*unchanged, *identify(kind, new_names)})
    return {kind: names for kind, names in identifiers.items() if names}


def read_times(exclusion: Exclusion, attributes: Mapping[str, Any], now: datetime) -> None:
    """Set the window and the expiry of a rule. Raises: `Invalid`, also if the rule would never be in force."""
    zone = read_zone(attributes.get("zone", exclusion.zone) or "UTC")
    window = read_window(attributes.get("window", exclusion.window), zone)
    expires_at = exclusion.expires_at
    if "expires_at" in attributes:
        expires_at = read_moment("expires_at", attributes["expires_at"], zone, now)
    if window:
        first = window.opening(now)
        if first is None:
            raise Invalid(messages.EXCLUSION_WINDOW_OVER.text)
        if expires_at and expires_at <= first:
            raise Invalid(messages.EXPIRES_BEFORE_WINDOW.fill(time=f"{first:%Y-%m-%d %H:%M}"))
    exclusion.zone, exclusion.window, exclusion.expires_at = zone.key, serialize_window(window), expires_at
