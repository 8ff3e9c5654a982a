"""Pagination of lists by marker and limit, sorted by the database."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.db.models import F, Model, Q, QuerySet
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.http import QueryDict
from rest_framework.request import Request

from watcher_site.refusals import Invalid, NotFound

DIRECTIONS = ("asc", "desc")
FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class Offer:
    """The query arguments of a list: its filters, and its sort keys with the column or relation of each.

    ``repeatable`` filters may be given several times. With ``several_keys`` there is an argument `sort`. ``direction``
    is the default of `sort_dir`.
    """

    sort_keys: Mapping[str, str]
    filters: Sequence[str] = ()
    repeatable: Collection[str] = ()
    several_keys: bool = False
    direction: str = "asc"


@dataclass(frozen=True)
class SortKey:
    """A sort key: its name in the API, and its column or relation path."""

    name: str
    column: str
    descending: bool = False

    @property
    def is_unique(self) -> bool:
        return self.column in {"pk", "uuid"}

    def order(self, queryset: QuerySet[Any]) -> Any:
        # PostgreSQL uses an index only if NULLS FIRST or LAST matches its definition.
        if not self.may_be_null(queryset):
            return f"-{self.column}" if self.descending else self.column
        column = F(self.column)
        return column.desc(nulls_last=True) if self.descending else column.asc(nulls_first=True)

    def may_be_null(self, queryset: QuerySet[Any]) -> bool:
        """Return whether the value of a row may be null. Annotated expressions never are."""
        is_column = self.column not in queryset.query.annotations
        return not self.is_unique and is_column and is_nullable(queryset.model, self.column)

    def same(self, value: Any) -> Q:
        return Q(**{f"{self.column}__isnull": True}) if value is None else Q(**{self.column: value})

    def beyond(self, value: Any) -> list[Q]:
        """Return the conditions of the rows after this value, in their order. Nulls sort as the smallest value."""
        is_null = Q(**{f"{self.column}__isnull": True})
        if value is None:
            return [] if self.descending else [~is_null]
        if self.descending:
            return [Q(**{f"{self.column}__lt": value}), is_null]
        return [Q(**{f"{self.column}__gt": value})]

    def bound(self, value: Any) -> Q:
        """Return the condition of the rows with this value and after it, without nulls."""
        return Q(**{f"{self.column}__{'lte' if self.descending else 'gte'}": value})


@dataclass(frozen=True)
class Page:
    """The requested page of a list.

    ``arguments`` are the filters, which the link to the next page repeats; ``combined`` is true if the keys were given
    by `sort`.
    """

    limit: int
    marker: str | None
    keys: tuple[SortKey, ...]
    arguments: Mapping[str, str | list[str]] = field(default_factory=dict)
    combined: bool = False

    @property
    def order(self) -> list[SortKey]:
        """Return the sort keys up to the first unique one; the id is added if there is none."""
        for place, key in enumerate(self.keys, 1):
            if key.is_unique:
                return list(self.keys[:place])
        return [*self.keys, SortKey("id", "pk", self.keys[-1].descending)]

    def rows(
        self, queryset: QuerySet[Any], after: Sequence[Any] | None, read: Callable[[QuerySet[Any]], Sequence[Any]]
    ) -> list[Any]:
        """Return one page of rows after the marker, with ties ordered by id and nulls as the smallest value.

        Usually one query reads a page. A page that spans several ranges of an index takes more.

        Args:
            read: evaluates a queryset and returns its rows.
        """
        rows: list[Any] = []
        for part in self.parts(queryset, after):
            if len(rows) < self.limit:
                rows += read(part[: self.limit - len(rows)])
        return rows

    def parts(self, queryset: QuerySet[Any], after: Sequence[Any] | None) -> list[QuerySet[Any]]:
        """Return the ordered rows, or those after the marker, as consecutive querysets."""
        ordered = queryset.order_by(*(key.order(queryset) for key in self.order))
        if after is None:
            return [ordered]
        return [ordered.filter(beyond) for beyond in ranges_beyond(queryset, self.order, after)]

    def next_link(self, path: str, last: Any) -> str:
        """Return the URL of the next page as a path, of which clients remove the part before ``/v1/``."""
        query = {**self.arguments, **self.sorting(), "limit": str(self.limit), "marker": str(last)}
        return f"{path}?{urlencode(query, doseq=True)}"

    def sorting(self) -> dict[str, str]:
        directions = ["desc" if key.descending else "asc" for key in self.keys]
        if self.combined:
            return {"sort": ",".join(f"{key.name}:{way}" for key, way in zip(self.keys, directions, strict=True))}
        return {"sort_key": self.keys[0].name, "sort_dir": directions[0]}


def ranges_beyond(queryset: QuerySet[Any], keys: Sequence[SortKey], values: Sequence[Any]) -> list[Q]:
    """Return the conditions of the rows after a row with these values of the keys, in their order.

    Each condition is one range of an index: PostgreSQL would scan the index from its start for a union of ranges.
    """
    key, value = keys[0], values[0]
    beyond = key.beyond(value) if key.may_be_null(queryset) else key.beyond(value)[:1]
    if len(keys) == 1:
        return beyond
    if not is_one_range(queryset, keys, values):
        return [*(key.same(value) & further for further in ranges_beyond(queryset, keys[1:], values[1:])), *beyond]
    compare = TupleLessThan if key.descending else TupleGreaterThan
    rows = Q(compare(Tuple(*(each.column for each in keys)), tuple(values)))
    # An index of a joined table serves only conditions on its own columns.
    return [rows & key.bound(value) if "__" in key.column else rows, *beyond[1:]]


def is_one_range(queryset: QuerySet[Any], keys: Sequence[SortKey], values: Sequence[Any]) -> bool:
    """Return whether one row comparison selects all rows after these values, apart from nulls of the first key."""
    if any(value is None for value in values) or len({key.descending for key in keys}) > 1:
        return False
    return not keys[0].descending or not any(key.may_be_null(queryset) for key in keys[1:])


def is_nullable(model: type[Model] | None, path: str) -> bool:
    """Return whether a column, or a relation on the path to it, is nullable."""
    for name in path.split("__"):
        column: Any = model._meta.get_field(name) if model else None
        if column.null:
            return True
        model = column.related_model
    return False


def read_page(query: QueryDict, offer: Offer) -> Page:
    """Parse the query arguments of a list.

    Raises:
        Invalid: an unknown or repeated argument, or an invalid limit, sort key or direction.
    """
    combined = offer.several_keys and "sort" in query
    known = {"limit", "marker", "sort_key", "sort_dir", *offer.filters}
    refuse_unknown_arguments(query, known | {"sort"} if offer.several_keys else known, offer.repeatable)
    if combined and ("sort_key" in query or "sort_dir" in query):
        raise Invalid("sort and sort_key or sort_dir cannot be given together")
    return Page(
        limit=read_limit(query.get("limit")),
        marker=query.get("marker"),
        keys=read_sort(query.get("sort", ""), offer) if combined else (read_sort_key(query, offer),),
        arguments={
            name: query.getlist(name) if name in offer.repeatable else query.get(name, "")
            for name in offer.filters
            if name in query
        },
        combined=combined,
    )


def read_sort_key(query: QueryDict, offer: Offer) -> SortKey:
    name, direction = query.get("sort_key", "id"), query.get("sort_dir", offer.direction)
    if name not in offer.sort_keys:
        raise Invalid(f"Invalid sort key: {name}")
    if direction not in DIRECTIONS:
        raise Invalid(f"Invalid sort direction: {direction}. Acceptable values are 'asc' or 'desc'")
    return SortKey(name, offer.sort_keys[name], direction == "desc")


def read_sort(text: str, offer: Offer) -> tuple[SortKey, ...]:
    """Parse ``key[:asc|:desc],…`` into sort keys.

    Raises:
        Invalid: an unknown key or direction, or a repeated key.
    """
    keys: dict[str, SortKey] = {}
    for part in text.split(","):
        name, colon, direction = part.strip().partition(":")
        if not name:
            raise Invalid("Missing sort key for 'sort'.")
        if name not in offer.sort_keys:
            known = ", ".join(offer.sort_keys)
            raise Invalid(f"Unsupported sort key '{name}' for 'sort'. It must be one of {known}.")
        if colon and direction not in DIRECTIONS:
            raise Invalid(f"Unsupported sort dir '{direction}' for 'sort'.")
        if name in keys:
            raise Invalid(f"Sort key '{name}' is given twice for 'sort'.")
        keys[name] = SortKey(name, offer.sort_keys[name], direction == "desc")
    return tuple(keys.values())


def refuse_unknown_arguments(query: QueryDict, known: Collection[str], repeatable: Collection[str] = ()) -> None:
    """Refuse unknown arguments, and repeated ones that may not be repeated, of which one would be ignored."""
    for name, values in query.lists():
        if name not in known:
            raise Invalid(f'Unknown argument: "{name}"')
        if len(values) > 1 and name not in repeatable:
            raise Invalid(f'Argument given more than once: "{name}"')


def read_limit(value: str | None) -> int:
    if value is None:
        return settings.API_MAX_LIMIT
    sign, digits = (value[:1], value[1:]) if value[:1] in "+-" else ("", value)
    if not (digits.isascii() and digits.isdigit()):
        raise Invalid(f"Invalid input for field/attribute limit. Value: '{value}'. unable to convert to int")
    # Further digits make no difference, as the value is limited to the maximum.
    limit = int(digits[:12]) if len(digits.lstrip("0")) <= 12 else settings.API_MAX_LIMIT
    if sign == "-" or limit == 0:
        raise Invalid("Limit must be positive")
    return min(limit, settings.API_MAX_LIMIT)


def read_flag(request: Request, name: str) -> bool:
    """Return a boolean query argument, false by default.

    Raises:
        Invalid: the value is neither true nor false.
    """
    value = request.query_params.get(name, "false")
    try:
        return FLAGS[value.lower()]
    except KeyError:
        raise Invalid(
            f"Invalid input for field/attribute {name}. Value: '{value}'. It must be true or false."
        ) from None


def read_uuid(value: str, field: str) -> UUID:
    """Parse a UUID of a path or a query.

    Raises:
        Invalid: it is not a UUID; the message is that of OpenStack's servers.
    """
    try:
        return UUID(value)
    except ValueError:
        raise Invalid(
            f"Invalid input for field/attribute {field}. Value: '{value}'. "
            f"unable to convert to uuid. Error: Expected a uuid but received {value}."
        ) from None


def sort_values(queryset: QuerySet[Any], page: Page, missing: str) -> Sequence[Any]:
    """Return the values of the sort keys of the marker's row.

    Raises:
        NotFound: there is no such row.
    """
    found: Sequence[Any] | None = queryset.values_list(*(key.column for key in page.order)).first()
    if found is None:
        raise NotFound(missing)
    return found
