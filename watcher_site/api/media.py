"""Parsing and rendering of JSON regardless of the headers, because OpenStack clients use nothing else."""

from collections.abc import Iterable
from typing import Any

import orjson
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from watcher_site.database.text import require_storable


def plain(value: Any) -> Any:
    """Convert a value that orjson does not support, such as a lazy text, to text."""
    return str(value)


class JSONRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return b"" if data is None else orjson.dumps(data, default=plain)


class JSONParser(BaseParser):
    """Parse a body as JSON, and refuse values that the database cannot store, such as NUL and lone surrogates."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            document = orjson.loads(stream.read())
        except orjson.JSONDecodeError as problem:
            raise ParseError("Request is not in valid JSON format") from problem
        require_storable("body", document)
        return document


class AlwaysJSON(BaseContentNegotiation):
    """Respond in JSON regardless of the Accept header, as OpenStack's servers do."""

    def select_parser(self, request: Any, parsers: Iterable[Any]) -> Any:
        return next(iter(parsers))

    def select_renderer(self, request: Any, renderers: Iterable[Any], format_suffix: str | None = None) -> Any:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type
