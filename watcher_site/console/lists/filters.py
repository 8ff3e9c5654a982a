"""List filters for objects, by names, UUIDs and prefixes of UUIDs, as the pages show them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from watcher_site.database.records import uuid_range
from watcher_site.messages import Text
from watcher_site.templatetags.names import stored_beginning, visible

NAME_OR_UUID = gettext_lazy("Name or UUID")
UNKNOWN_OBJECT = gettext_lazy("%(text)s was not found. Enter a name, a UUID or at least its first 8 characters.")
LONGEST = 255
# A shorter text is more likely a name than a prefix of a UUID.
SHORTEST_BEGINNING = 8
# The number of objects in a message about several matches.
MOST_LISTED = 3


def bounds_of(text: str) -> tuple[Any, Any] | None:
    """Return the first and the last UUID with a prefix of at least 8 characters, or None if the text is not one."""
    return uuid_range(text) if len(text) >= SHORTEST_BEGINNING else None


def name_condition(text: str, name: str = "name", uuid: str = "uuid") -> Q:
    """Return the condition of objects whose names contain a text, or whose UUIDs begin with it."""
    condition = Q(**{f"{name}__icontains": text}) | Q(**{f"{name}__icontains": stored_beginning(text)})
    bounds = bounds_of(text)
    return condition | Q(**{f"{uuid}__range": bounds}) if bounds else condition


class NameFilter(django_filters.CharFilter):
    """Selects objects by a part of a name, or by a UUID or its prefix.

    Args:
        name: the path to the name, such as ``node__hostname``; the UUID is taken from the same object.
    """

    def __init__(self, name: str = "name", **options: Any) -> None:
        options = {"lookup_expr": "icontains", "label": NAME_OR_UUID, "max_length": LONGEST, **options}
        super().__init__(field_name=name, **options)
        path, _separator, _column = name.rpartition("__")
        self.uuid = f"{path}__uuid" if path else "uuid"

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        return qs.filter(name_condition(value, self.field_name, self.uuid)) if value else qs


@dataclass(frozen=True)
class Match:
    """An object that matches a text: its name, its UUID, and the value by which the filter selects."""

    name: str
    uuid: Any
    value: Any

    def __str__(self) -> str:
        return f"{visible(self.name)} {self.uuid}".strip()


class ObjectField(forms.CharField):
    """A field for one object, which ``find`` looks up by its name, its UUID or a prefix of the UUID."""

    def __init__(self, *, find: Callable[[str], Iterable[Match]], unknown: Text, **options: Any) -> None:
        super().__init__(**{"max_length": LONGEST, **options})
        self.find, self.unknown = find, unknown

    def clean(self, value: Any) -> Any:
        """Return the value of the object that a text identifies, or None for no text.

        Raises:
            ValidationError: no object has this name or UUID, or several have.
        """
        text = super().clean(value)
        if not text:
            return None
        matches = {match.value: match for match in self.find(text)}
        if not matches:
            raise ValidationError(self.unknown % {"text": visible(text)})
        if len(matches) > 1:
            shown = [str(match) for match in matches.values()]
            listed = ", ".join([*shown[:MOST_LISTED], *(["…"] if len(shown) > MOST_LISTED else [])])
            raise ValidationError(_("Several match: %(matches)s. Enter one of them.") % {"matches": listed})
        return next(iter(matches))


class ObjectFilter(django_filters.CharFilter):
    """Selects by one object. A text that matches no object or several objects is refused beside the field."""

    field_class = ObjectField

    def __init__(
        self, find: Callable[[str], Iterable[Match]], *, unknown: Text = UNKNOWN_OBJECT, **options: Any
    ) -> None:
        super().__init__(find=find, unknown=unknown, **options)
