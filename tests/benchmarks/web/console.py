"""The cost of the pages of the console with a large cloud: time on a processor, and queries.

``python -m tests.benchmarks.web.console`` measures them alone, and prints each page. The pages follow from the URLs,
and each list is also requested with each of its filters and sorts. The time is that of this process, in which Django's
test client calls the site: the time of PostgreSQL is not in it.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

import django
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import own_database
from tests.benchmarks.table import Line, written

HOST = "127.0.0.1"
MILLISECONDS, QUERIES = 100, 20
# The limit of the request that computes the preflight of the largest plan.
FIRST_PREFLIGHT_MILLISECONDS = 1000
ROUNDS = 3
# Pages that redirect: these records do not allow the operation, or no rows are selected.
REDIRECTS = {
    *("notifications:resend-all", "stacks:resource"),
    *("plans:skip", "plans:restore", "pruning:skip", "pruning:restore"),
}
SHOWN = 5
# These end or begin a session, write a file, or are for users of Keystone.
LEFT_OUT = ("login", "logout", "export", "token", "account:scope")
# Of pages that are not lists: the queries that are measured as well.
VARIANTS = {"plans:timeline": ("by=worker", "by=node"), "plans:preflight": ("page=2",)}


@dataclass(frozen=True)
class Cost:
    """The cost of one page: its least time on a processor in milliseconds, its queries, and its size in kB."""

    page: str
    milliseconds: float
    queries: int
    size: float


@dataclass(frozen=True)
class Page:
    """A page to request, by the name of its URL and its path."""

    name: str
    path: str


def pages(large_plans: list[Any], chosen: Mapping[tuple[str, str], str] | None = None) -> Iterator[Page]:
    """Yield each page, of a sample record where it shows one, and each filter and sort of a list.

    Views that only perform an operation have no page.

    Args:
        chosen: values of filters, by the names of the page and of the filter.
    """
    for name, pattern in named_patterns(get_resolver("watcher_site.console.urls").url_patterns):
        view = getattr(pattern.callback, "view_class", None)
        if view is None or any(word in name for word in LEFT_OUT) or not has_page(view):
            continue
        path = "/console/" if name == "home" else ""
        for arguments in samples(name, view, pattern, large_plans):
            path = reverse(name, kwargs=arguments)
            yield Page(name, path)
        yield from (Page(name, f"{path}?{query}") for query in VARIANTS.get(name, ()))
        if hasattr(view, "filterset_class"):
            yield from (Page(name, f"{path}?{urlencode(query)}") for query in variants(name, view, chosen or {}))


def has_page(view: Any) -> bool:
    """Return whether a view responds to GET with a page: a button without a question does not."""
    is_readable = "get" in view.http_method_names and hasattr(view, "get")
    return is_readable and bool(getattr(view, "question", True))


def named_patterns(patterns: list[Any], space: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from named_patterns(
                pattern.url_patterns, f"{space}{pattern.namespace}:" if pattern.namespace else space
            )
        else:
            yield f"{space}{pattern.name}", pattern


def samples(name: str, view: Any, pattern: URLPattern, large_plans: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a page: none, or those of one record of its model; for plans, one of each size.

    The page of an operation gets a record whose state allows it, and none if there is no such record.
    """
    match list(pattern.pattern.converters):
        case []:
            yield {}
        case ["uuid"] if name == "plans:detail":
            yield from ({"uuid": plan.uuid} for plan in large_plans)
        case ["uuid"] if name == "plans:timeline":
            yield {"uuid": large_plans[-1].uuid}
        case ["uuid"] if name == "plans:preflight":
            yield {"uuid": large_plans[-2].uuid}
        case ["uuid" | "pk" as key] if model := getattr(view, "model", None):
            # Other benchmarks have created servers without a project first.
            records = model._default_manager.order_by("-pk" if name.startswith("projects:") else "pk")
            if states := getattr(view, "possible_in", None):
                records = records.filter(state__in=states)
            yield from ({key: getattr(record, key)} for record in records[:1])


def variants(page: str, view: Any, chosen: Mapping[tuple[str, str], str]) -> Iterator[dict[str, str]]:
    """Yield the queries of a list: each filter with a value, each column in both orders, and a later page."""
    for name, field in view.filterset_class.base_filters.items():
        choices = [value for value, _ in field.extra.get("choices", [])]
        yield {name: chosen.get((page, name), choices[0] if choices else "a")}
    for name, column in view.table_class.base_columns.items():
        if column.orderable is not False:
            yield from ({"sort": name}, {"sort": f"-{name}"})
    yield {"page": "2"}


def cost_of(client: Client, page: Page) -> Cost | None:
    """Return the cost of a page, or None if it redirects and is known to.

    Raises:
        RuntimeError: the response is another one: it would be measured instead of the page.
    """
    path = page.path
    if "/preflight/" in path:
        client.get(path)  # Computes the result, which is then stored: that is measured by itself.
    with CaptureQueriesContext(connection) as queries:
        response = client.get(path)
    if response.status_code == HTTPStatus.FOUND and page.name in REDIRECTS:
        return None
    if response.status_code != HTTPStatus.OK:
        raise RuntimeError(f"GET {path}: {response.status_code}")
    number = len(queries)  # Before the next request empties their log.
    return Cost(path, 1000 * min(seconds(client, path) for _ in range(ROUNDS)), number, len(response.content) / 1000)


def seconds(client: Client, path: str) -> float:
    begin = time.process_time()
    client.get(path)
    return time.process_time() - begin


def time_of_first_preflight(client: Client, plan: Any) -> float:
    """Return the time on a processor in milliseconds of the request that computes the preflight of a plan."""
    path = reverse("plans:preflight", kwargs={"uuid": plan.uuid})

    def compute() -> float:
        plan.preflight_results.all().delete()
        return seconds(client, path)

    return 1000 * min(compute() for _ in range(ROUNDS))


def costs() -> tuple[list[Cost], float]:
    """Create the rows, request each page, and return the costs in descending order.

    The second value is the time of the first preflight of the largest plan, in milliseconds.
    """
    large_plans = import_module("tests.benchmarks.web.console_rows").fill()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    models = import_module("django.contrib.auth.models")
    client = Client(SERVER_NAME=HOST)
    client.force_login(models.User.objects.get(username="benchmark"))
    # Collect garbage as the workers of gunicorn do.
    import_module("watcher_site.gunicorn").configure_garbage_collection()
    found = [cost_of(client, page) for page in pages(large_plans)]
    ordered = sorted(filter(None, found), key=lambda cost: -cost.milliseconds)
    return ordered, time_of_first_preflight(client, large_plans[-2])


def lines(found: list[Cost], first_preflight: float) -> list[Line]:
    """Return the lines of the slowest pages, of the page with the most queries, and of the first preflight."""
    most = max(found, key=lambda cost: cost.queries)
    return [
        *(
            Line(f"processor time of {cost.page}", cost.milliseconds, "requirement", MILLISECONDS, 1)
            for cost in found[:SHOWN]
        ),
        Line(f"queries of {most.page}", most.queries, "requirement", QUERIES, 1, unit="queries"),
        Line("processor time of a first preflight", first_preflight, "requirement", FIRST_PREFLIGHT_MILLISECONDS, 1),
    ]


def measure() -> list[Line]:
    """Return the lines of the five slowest of all pages; the rows are those of a large cloud, and are added."""
    return lines(*costs())


def run() -> int:
    with own_database() as database:
        os.environ.update(environment(database))
        django.setup()
        call_command("migrate", verbosity=0)
        import_module("tests.benchmarks.rows").person()
        found, first_preflight = costs()
        connection.close()
    for cost in found:
        print(f"{cost.milliseconds:7.1f} ms {cost.queries:3} queries {cost.size:7.1f} kB  {cost.page}")  # noqa: T201
    print(written(lines(found, first_preflight)))  # noqa: T201
    return 0 if all(line.met for line in lines(found, first_preflight)) else 1


if __name__ == "__main__":
    sys.exit(run())
