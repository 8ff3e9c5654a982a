"""Access of commands to the resources of the API, with its filters, sort keys and fields, but without HTTP."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, cast

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from rest_framework.request import Request
from rest_framework.serializers import DateTimeField

from watcher_site.api.paging import Offer
from watcher_site.api.serializers import Row
from watcher_site.api.versions import MAXIMUM, Version
from watcher_site.api.views import ResourceView
from watcher_site.database.records import parse_uuid
from watcher_site.database.text import require_storable
from watcher_site.refusals import Invalid, NotFound

# The number of candidates that are listed for an ambiguous identifier.
MOST_NAMED = 3


class Unrestricted:
    """A mixin for views that commands read from, without permissions: the user has access to the database.

    Links begin with the path, because a command does not know the address of the site.
    """

    sees_all = True

    def may(self, *_: Any) -> bool:
        return True

    def host(self) -> str:
        return ""

    @classmethod
    def offer(cls, version: Version) -> Offer:
        """Return the query arguments of lists, always with several sort keys."""
        found: Offer = super().offer(version)  # type: ignore[misc]
        return replace(found, several_keys=True)


@cache
def reading_view(view: Any) -> Any:
    """Return a subclass of a view from which commands read."""
    return type(view.__name__, (Unrestricted, view), {})


@dataclass(frozen=True)
class Filter:
    """An option of a list for a filter of the API, if it is not named after the filter.

    ``model`` is the model of the filter's object, whose name or short UUID the option accepts.
    """

    option: str
    help: str
    model: str = ""


@dataclass(frozen=True)
class Resource:
    """The declaration of a resource for commands.

    Args:
        title: its name in messages, such as "action plan".
        view: the view of the API.
        columns: the fields of its table.
        filters: options by the filter of the API.
        named_by: the column with its name, if it has one.
        find_titles: returns titles of objects by UUID, for the additional field "title", which the API does not have.
    """

    title: str
    view: type[ResourceView]
    columns: tuple[str, ...]
    filters: Mapping[str, Filter] = field(default_factory=dict)
    named_by: str | None = "name"
    find_titles: Callable[[Collection[Any]], Mapping[str, str]] | None = None

    @property
    def plural(self) -> str:
        return f"{self.title[:-1]}ies" if self.title.endswith("y") else f"{self.title}s"

    @property
    def identifier(self) -> str:
        """The field that identifies an object."""
        return self.columns[0]

    @cached_property
    def fields(self) -> list[str]:
        found = [name for name in self.view.serializer_class.visible(MAXIMUM, True) if name != "links"]
        return [found[0], "title", *found[1:]] if self.find_titles else found

    @cached_property
    def times(self) -> frozenset[str]:
        declared = self.view.serializer_class._declared_fields
        return frozenset(name for name in self.fields if isinstance(declared.get(name), DateTimeField))

    @property
    def offer(self) -> Offer:
        found: Offer = reading_view(cast("Any", self.view)).offer(MAXIMUM)
        return found

    def open(self, query: QueryDict | None = None, *, is_single: bool = False) -> Any:
        """Return the view for a request of a list, or of a single object."""
        request: Any = HttpRequest()
        request.method, request.GET = "GET", query or QueryDict()
        view = reading_view(cast("Any", self.view))()
        view.request = Request(request)
        view.request.user, view.request.version = get_user_model()(is_superuser=True), MAXIMUM
        view.kwargs, view.action, view.detail = {}, "retrieve" if is_single else "detailed_list", is_single
        return view

    def pages(self, arguments: Mapping[str, Any], limit: int | None) -> Iterator[list[Row]]:
        """Yield the pages of a list, with at most ``limit`` rows in total.

        Args:
            arguments: the filters and `sort` of the API; a repeatable filter has a list.

        Raises:
            Invalid: a value is not valid.
        """
        query = QueryDict(mutable=True)
        for name, value in arguments.items():
            query.setlist(name, value if isinstance(value, list) else [value])
        remaining = limit
        while remaining is None or remaining > 0:
            size = min(remaining or settings.API_MAX_LIMIT, settings.API_MAX_LIMIT)
            query["limit"] = str(size)
            view = self.open(query)
            rows = view.detailed_list(view.request).data[self.view.serializer_class.Meta.collection]
            yield self.with_titles(rows)
            if len(rows) < size:
                return
            query["marker"] = str(rows[-1][self.identifier])
            remaining = None if remaining is None else remaining - size

    def rows(self, keys: Iterable[int]) -> list[Row]:
        """Return the current rows of the objects with these primary keys."""
        view = self.open(is_single=True)
        return self.with_titles(view.read(view.get_queryset().filter(pk__in=keys).order_by("pk"), True))

    def row(self, record: Any) -> Row:
        """Return the current row of an object."""
        for row in self.rows([record.pk]):
            return row
        raise NotFound(f"There is no {self.title} {record} any more.")

    def with_titles(self, rows: list[Row]) -> list[Row]:
        if self.find_titles:
            titles = self.find_titles([row["uuid"] for row in rows])
            for row in rows:
                row["title"] = titles.get(str(row["uuid"]), "")
        return rows

    def find(self, identifier: str) -> Any:
        """Return the object with a UUID, a name, or a prefix of a UUID. Raises: `Invalid`, `NotFound`."""
        return find_record(self.open(is_single=True).get_queryset(), self.title, identifier, self.named_by)

    def candidates(self, prefix: str, most: int = 50) -> list[str]:
        """Return names and UUIDs of objects with a prefix, for command-line completion."""
        records = self.open(is_single=True).get_queryset().order_by("-pk")
        found: list[str] = []
        if hasattr(records, "beginning_with"):
            begun = records.beginning_with(prefix) if prefix else records
            found += map(str, begun.values_list("uuid", flat=True)[:most])
        if self.named_by:
            names = records.filter(**{f"{self.named_by}__startswith": prefix}).values_list(self.named_by, flat=True)
            found += filter(None, names[:most])
        return found


def find_record(records: QuerySet[Any], title: str, identifier: str, named_by: str | None) -> Any:
    """Return the record with a UUID, else with a name, else with a prefix of a UUID.

    Raises:
        NotFound: there is none.
        Invalid: there are several.
    """
    if not identifier.strip():
        raise Invalid(f"{title}: must not be empty.")
    require_storable(title, identifier)
    for found in lookups(records, identifier, named_by):
        candidates = list(found.order_by("pk")[: MOST_NAMED + 1])
        if len(candidates) > 1:
            raise Invalid(f"{title}: {identifier} is ambiguous: {name_some(candidates)}.")
        if candidates:
            return candidates[0]
    raise NotFound(f"There is no {title} {identifier}.")


def lookups(records: Any, identifier: str, named_by: str | None) -> Iterator[QuerySet[Any]]:
    """Yield the queries for an identifier, the most exact one first."""
    uuid = parse_uuid(identifier)
    if uuid is not None and hasattr(records, "beginning_with"):
        yield records.filter(uuid=uuid)
    if named_by:
        yield records.filter(**{named_by: identifier})
    if hasattr(records, "beginning_with"):
        yield records.beginning_with(identifier)


def name_some(candidates: Sequence[Any]) -> str:
    named = ", ".join(str(record.uuid) for record in candidates[:MOST_NAMED])
    return f"{named} and others" if len(candidates) > MOST_NAMED else named


def find_related(filter: Filter, identifier: str) -> Any:
    """Return the UUID of the object of a filter. Raises: `Invalid`, `NotFound`."""
    model: Any = apps.get_model(filter.model)
    has_name = any(column.name == "name" for column in model._meta.fields)
    title = str(model._meta.verbose_name)
    return find_record(model.objects.present(), title, identifier, "name" if has_name else None).uuid
