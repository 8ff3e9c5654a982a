"""How a resource looks from outside: its fields, the version that brought each, and the columns they are read from."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from watcher_site.api.errors import NotAcceptableHere
from watcher_site.api.versions import MAXIMUM, Version

Row = dict[str, Any]


class ResourceSerializer(serializers.Serializer[Any]):
    """The one declaration of a resource's fields, for answers, for bodies and for the OpenAPI document.

    Answers are not made field by field and row by row: `read` takes the columns from the database as they are,
    and each ``add_<field>(rows)`` method completes all rows of a page at once.

    ``Meta`` holds:
        short: the fields of the short list; the other lists and single objects have all.
        since: the version that brought a field, where that is not the first. It gates input as well as output.
        columns: the column or expression of a field, where that is not the column of the same name.
        computed: the fields that no column holds.
        hidden: columns that ``add_…`` methods need and nobody sees.
        collection: the resource's name in URLs.
    """

    class Meta:
        collection = ""
        short: tuple[str, ...] = ()
        since: Mapping[str, Version] = {}
        columns: Mapping[str, Any] = {}
        computed: tuple[str, ...] = ()
        hidden: tuple[str, ...] = ()

    def get_fields(self) -> dict[str, Any]:
        version = self.context.get("version", MAXIMUM)
        detailed = self.context.get("detailed", True)
        fields = super().get_fields()
        return {name: fields[name] for name in fields if self.shows(name, version, detailed)}

    @classmethod
    def shows(cls, name: str, version: Version, detailed: bool) -> bool:
        since: Version = cls.option("since", {}).get(name, (1, 0))
        return version >= since and (detailed or name in cls.option("short", ()))

    @classmethod
    def option(cls, name: str, default: Any) -> Any:
        return getattr(cls.Meta, name, default)

    @classmethod
    def visible(cls, version: Version, detailed: bool) -> list[str]:
        return [name for name in cls._declared_fields if cls.shows(name, version, detailed)]

    @classmethod
    def refuse_newer(cls, fields: Mapping[str, Any], version: Version) -> None:
        """Refuse a body that speaks of a field that the version does not have.

        Raises:
            NotAcceptableHere: as existing servers answer.
        """
        since = cls.option("since", {})
        if any(version < since.get(name, (1, 0)) for name in fields):
            raise NotAcceptableHere

    @classmethod
    def read(cls, queryset: QuerySet[Any], version: Version, detailed: bool, host: str) -> list[Row]:
        """Return the rows as they go out, in a number of queries that does not depend on how many there are."""
        fields = cls.visible(version, detailed)
        computed = [name for name in fields if name in cls.option("computed", ())]
        stored = [*(name for name in fields if name not in computed), *cls.option("hidden", ())]
        columns = cls.option("columns", {})
        values = queryset.values_list(*(columns.get(name, name) for name in stored))
        rows = [dict(zip(stored, row, strict=True)) for row in values]
        cls.complete(rows, computed, host)
        return rows

    @classmethod
    def complete(cls, rows: list[Row], computed: list[str], host: str) -> None:
        for name in computed:
            if name != "links":
                adder: Callable[[list[Row]], None] = getattr(cls, f"add_{name}")
                adder(rows)
        cls.add_links(rows, host)
        for hidden in cls.option("hidden", ()):
            for row in rows:
                del row[hidden]

    @classmethod
    def add_links(cls, rows: list[Row], host: str) -> None:
        own, bookmark = f"{host}/v1/{cls.Meta.collection}/", f"{host}/{cls.Meta.collection}/"
        for row in rows:
            name = row.get("uuid") or row["id"]
            row["links"] = [
                {"href": f"{own}{name}", "rel": "self"},
                {"href": f"{bookmark}{name}", "rel": "bookmark"},
            ]


class LinkSerializer(serializers.Serializer[Any]):
    href = serializers.CharField(help_text="an absolute URL")
    rel = serializers.CharField()


def links_field() -> Any:
    """Return the pair of links that each object has: to itself, and without the version."""
    return LinkSerializer(many=True, read_only=True)


@extend_schema_field({"type": "string", "example": "2026-11-20T22:55:41", "description": "UTC, without saying so"})
class ZonelessTimeField(serializers.DateTimeField):
    """A time that existing servers show without its zone (`without_zone`)."""


def without_zone(rows: list[Row], *fields: str) -> None:
    """Show these times as existing servers show them: in UTC, without saying so."""
    for row in rows:
        for field in fields:
            if row.get(field) is not None:
                row[field] = row[field].replace(tzinfo=None)
