"""Paged lists in the format of Nova and Cinder, with a link to the next page."""

from typing import Any

from werkzeug import Request
from werkzeug.exceptions import BadRequest


def page(request: Request, name: str, items: list[dict[str, Any]], size: int) -> dict[str, Any]:
    marker = request.args.get("marker")
    keys = [item["id"] for item in items]
    if marker and marker not in keys:
        raise BadRequest(f"marker [{marker}] not found")
    begin = keys.index(marker) + 1 if marker else 0
    shown = items[begin : begin + size]
    body: dict[str, Any] = {name: shown}
    if begin + size < len(items):
        others = "".join(f"&{key}={value}" for key, value in request.args.items() if key != "marker")
        href = f"{request.base_url}?marker={shown[-1]['id']}{others}"
        body[f"{name}_links"] = [{"rel": "next", "href": href}]
    return body
