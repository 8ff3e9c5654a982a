"""Representations of resources: their fields, with the microversion and the database column of each."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from watcher_site.api.versions import MAXIMUM, Version

Row = dict[str, Any]


class ResourceSerializer(serializers.Serializer[Any]):
    """The declaration of a resource's fields, for responses, bodies and the OpenAPI document.

    Responses are not serialized field by field and row by row: `read` reads the columns from the database, and each
    ``add_<field>(rows)`` method sets a field in all rows of a page at once.

    ``Meta`` contains:
        short: the fields of the short list; other responses contain all fields.
        since: the microversion that added a field, if it is not the first one.
        columns: the column or expression of a field, if its name differs.
        formerly: the microversion since which a field is read from that column, and the column or expression before.
        json: the fields whose columns contain JSON, which is returned as stored, without parsing.
        computed: the fields without a column.
        same: the fields that are copies of another one, and its name.
        hidden: columns that ``add_…`` methods require and that are not returned.
        collection: the resource's name in URLs.
    """

    class Meta:
        collection = ""
        short: tuple[str, ...] = ()
        since: Mapping[str, Version] = {}
        columns: Mapping[str, Any] = {}
        formerly: Mapping[str, tuple[Version, Any]] = {}
        json: tuple[str, ...] = ()
        computed: tuple[str, ...] = ()
        same: Mapping[str, str] = {}
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
    @cache
    def visible(cls, version: Version, detailed: bool) -> list[str]:
        return [name for name in cls._declared_fields if cls.shows(name, version, detailed)]

    @classmethod
    def read(cls, queryset: QuerySet[Any], version: Version, detailed: bool, host: str) -> list[Row]:
        """Return the serialized rows of a queryset. The number of queries does not depend on the number of rows."""
        return cls.finish(cls.select(queryset, version, detailed), version, detailed, host)

    @classmethod
    def select(cls, queryset: QuerySet[Any], version: Version, detailed: bool) -> QuerySet[Any]:
        """Select the columns of the stored fields, which `finish` serializes."""
        return queryset.values_list(*(cls.column(name, version) for name in cls.stored(version, detailed)))

    @classmethod
    @cache
    def stored(cls, version: Version, detailed: bool) -> list[str]:
        elsewhere = {*cls.option("computed", ()), *cls.option("same", ())}
        shown = [name for name in cls.visible(version, detailed) if name not in elsewhere]
        return [*shown, *cls.option("hidden", ())]

    @classmethod
    def column(cls, name: str, version: Version = MAXIMUM) -> Any:
        until, former = cls.option("formerly", {}).get(name, (version, None))
        column = former if version < until else cls.option("columns", {}).get(name, name)
        is_read = name in cls.option("json", ()) and isinstance(column, str)
        return Cast(column, TextField()) if is_read else column

    @classmethod
    @cache
    def texts(cls, version: Version, detailed: bool) -> list[str]:
        """Return the stored fields whose columns contain JSON."""
        stored = cls.stored(version, detailed)
        return [name for name in cls.option("json", ()) if name in stored]

    @classmethod
    @cache
    def completions(cls, version: Version, detailed: bool) -> list[tuple[str, str | None]]:
        """Return the fields without a column, in their order, each with the field that it copies, if any."""
        stored, same = cls.stored(version, detailed), cls.option("same", {})
        missing = [name for name in cls.visible(version, detailed) if name not in stored and name != "links"]
        return [(name, same.get(name)) for name in missing]

    @classmethod
    def finish(cls, values: Iterable[Sequence[Any]], version: Version, detailed: bool, host: str) -> list[Row]:
        """Serialize rows of `select`."""
        stored = cls.stored(version, detailed)
        rows = [dict(zip(stored, row, strict=True)) for row in values]
        for name in cls.texts(version, detailed):
            for row in rows:
                row[name] = orjson.Fragment(row[name])
        for name, repeated in cls.completions(version, detailed):
            if repeated is None:
                getattr(cls, f"add_{name}")(rows)
                continue
            for row in rows:
                row[name] = row[repeated]
        cls.add_links(rows, host)
        for hidden in getattr(cls.Meta, "hidden", ()):
            for row in rows:
                del row[hidden]
        return rows

    @classmethod
    def add_links(cls, rows: list[Row], host: str) -> None:
        begin = orjson.dumps(host).decode().removesuffix('"')
        own, bookmark = f"{begin}/v1/{cls.Meta.collection}/", f"{begin}/{cls.Meta.collection}/"
        for row in rows:
            name = row.get("uuid") or row["id"]
            links = f'[{{"href":{own}{name}","rel":"self"}},{{"href":{bookmark}{name}","rel":"bookmark"}}]'
            row["links"] = orjson.Fragment(links)


class LinkSerializer(serializers.Serializer[Any]):
    href = serializers.CharField(help_text="an absolute URL")
    rel = serializers.CharField()


def links_field() -> Any:
    """Return the field of the two links of each object: to itself, and without the version."""
    return LinkSerializer(many=True, read_only=True)


@extend_schema_field(
    {"type": "string", "example": "2026-11-20T22:55:41", "description": "UTC, without a suffix for the time zone"}
)
class ZonelessTimeField(serializers.DateTimeField):
    """A time that OpenStack's servers return without its zone (`without_zone`)."""


def without_zone(rows: list[Row], *fields: str) -> None:
    """Remove the zone of these times, which are in UTC, as OpenStack's servers do."""
    for row in rows:
        for field in fields:
            if row.get(field) is not None:
                row[field] = row[field].replace(tzinfo=None)
