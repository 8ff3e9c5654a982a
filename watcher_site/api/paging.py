"""Lists, page by page: marker, limit, and a sort that the database does."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.db.models import F, Model, Q, QuerySet
from django.http import QueryDict

from watcher_site.refusals import Invalid, NotFound


@dataclass(frozen=True)
class Page:
    """What a list was asked for.

    ``sort_column`` is the column or relation path that ``sort_key`` stands for; ``arguments`` are the filters,
    which the link to the next page carries on.
    """

    limit: int
    marker: str | None
    sort_key: str
    sort_column: str
    descending: bool
    arguments: dict[str, str]

    def cut(self, queryset: QuerySet[Any], after: tuple[Any, int] | None) -> QuerySet[Any]:
        """Order the rows, ties by id, nulls as the smallest value, and leave one page after the marker's."""
        if after is not None:
            queryset = queryset.filter(self.beyond(*after))
        return queryset.order_by(*self.order(queryset.model))[: self.limit]

    def order(self, model: type[Model]) -> list[Any]:
        sign = "-" if self.descending else ""
        if self.sort_column == "pk":
            return [f"{sign}pk"]
        # No more words than needed: each that its index does not have keeps PostgreSQL from it.
        if self.sort_column == "uuid":
            return [f"{sign}uuid"]
        if not is_nullable(model, self.sort_column):
            return [f"{sign}{self.sort_column}", f"{sign}pk"]
        column = F(self.sort_column)
        key = column.desc(nulls_last=True) if self.descending else column.asc(nulls_first=True)
        return [key, f"{sign}pk"]

    def beyond(self, value: Any, pk: int) -> Q:
        further = "lt" if self.descending else "gt"
        same_value = Q(**{f"pk__{further}": pk})
        if self.sort_column == "pk":
            return same_value
        is_null = Q(**{f"{self.sort_column}__isnull": True})
        if value is None:
            return is_null & same_value if self.descending else (is_null & same_value) | ~is_null
        beyond = Q(**{self.sort_column: value}) & same_value | Q(**{f"{self.sort_column}__{further}": value})
        return beyond | is_null if self.descending else beyond

    def next_link(self, path: str, last: Any) -> str:
        """Return the URL of the page after this one. Clients cut off what comes before ``/v1/``."""
        query = self.arguments | {
            "sort_key": self.sort_key,
            "sort_dir": "desc" if self.descending else "asc",
            "limit": str(self.limit),
            "marker": str(last),
        }
        return f"{path}?{urlencode(query)}"


def is_nullable(model: type[Model] | None, path: str) -> bool:
    """Say whether a column, or a relation on the way to it, may be null."""
    for name in path.split("__"):
        field: Any = model._meta.get_field(name) if model else None
        if field.null:
            return True
        model = field.related_model
    return False


def read_page(query: QueryDict, sort_keys: dict[str, str], filters: list[str]) -> Page:
    """Return what a list was asked for.

    Raises:
        Invalid: an unknown argument, or a limit, sort key or direction that is none.
    """
    refuse_unknown(query, {"limit", "marker", "sort_key", "sort_dir", *filters})
    sort_key, direction = query.get("sort_key", "id"), query.get("sort_dir", "asc")
    if sort_key not in sort_keys:
        raise Invalid(f"Invalid sort key: {sort_key}")
    if direction not in {"asc", "desc"}:
        raise Invalid(f"Invalid sort direction: {direction}. Acceptable values are 'asc' or 'desc'")
    return Page(
        limit=read_limit(query.get("limit")),
        marker=query.get("marker"),
        sort_key=sort_key,
        sort_column=sort_keys[sort_key],
        descending=direction == "desc",
        arguments={name: query.get(name, "") for name in filters if name in query},
    )


def refuse_unknown(query: QueryDict, known: Collection[str]) -> None:
    for name in query:
        if name not in known:
            raise Invalid(f'Unknown argument: "{name}"')


def read_limit(value: str | None) -> int:
    if value is None:
        return settings.API_MAX_LIMIT
    sign, digits = (value[:1], value[1:]) if value[:1] in "+-" else ("", value)
    if not (digits.isascii() and digits.isdigit()):
        raise Invalid(f"Invalid input for field/attribute limit. Value: '{value}'. unable to convert to int")
    # Only so many digits matter: more would only be cut to the maximum.
    limit = int(digits[:12]) if len(digits.lstrip("0")) <= 12 else settings.API_MAX_LIMIT
    if sign == "-" or limit == 0:
        raise Invalid("Limit must be positive")
    return min(limit, settings.API_MAX_LIMIT)


def read_uuid(value: str, field: str) -> UUID:
    """Return a UUID from a path or a query.

    Raises:
        Invalid: it is none, in the words that existing clients know.
    """
    try:
        return UUID(value)
    except ValueError:
        raise Invalid(
            f"Invalid input for field/attribute {field}. Value: '{value}'. "
            f"unable to convert to uuid. Error: Expected a uuid but received {value}."
        ) from None


def sort_value(queryset: QuerySet[Any], page: Page, missing: str) -> tuple[Any, int]:
    """Return the marker's place in the order: its sort value and its id.

    Raises:
        NotFound: there is no such row.
    """
    found = queryset.values_list(page.sort_column, "pk").first()
    if found is None:
        raise NotFound(missing)
    return found
