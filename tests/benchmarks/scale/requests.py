"""The requests and pages that are compared: lists with each filter, each sort key and a marker, pages, and exports."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from hashlib import md5
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import User
from django.test import Client
from django.urls import resolve
from django.utils import timezone

from plans.models import ActionPlan
from tests.benchmarks import rows
from tests.benchmarks.scale.costs import Installation, Work
from tests.benchmarks.web.console import HOST, pages
from watcher_site.api.versions import MAXIMUM, format_version

# The rows of a page: the small installation has more of each kind that is compared.
LIMIT, ROWS = 20, 25
# Plans of about 100 actions, by their numbers: one that can be started, and one that has ended.
RECOMMENDED, SUCCEEDED = 16, 11
VERSION = f"infra-optim {format_version(MAXIMUM)}"
SERVER = "server-07919"
# The lists of the API with values of their filters that at least `LIMIT` rows of the small installation have, or none.
LISTS: dict[str, tuple[str, ...]] = {
    "/v1/actions": (
        "action_plan_uuid={plan}",
        "audit_uuid={audit}",
        "name=migrate",
        "target={server}",
        "action=migrate",
        "action=resize&action=migrate",
        "status=INIT",
        "status=SUCCEEDED",
        "status=FAILED",
        "action=migrate&status=SUCCEEDED&sort=created_at:desc",
        "status=SUCCEEDED&sort=updated_at:desc",
        "sort=state,created_at:desc",
        "sort=action,status",
    ),
    "/v1/action_plans": ("audit_uuid={audit}", "strategy=basic"),
    "/v1/audits": ("strategy=basic", "goal=server_consolidation"),
    "/v1/servers": (f"name={SERVER}", "status=ACTIVE", "project_id={project}", "flavor=size-1"),
    "/v1/history": (
        "user=user-7",
        "user_id={user}",
        "project_id={project}",
        "deed=action.skip",
        "outcome=refused",
        "object_type=action",
        "object_uuid={plan}",
        f"object_name={SERVER}",
        "since=2020-01-01T00:00:00Z",
        "before={middle}",
        "since={middle}&user=user-7",
        "text=in%20use",
        "deed=action.skip&user=user-3&outcome=success",
    ),
}
# Values of the filters of pages, where the first choice has too few rows in the small installation.
CHOSEN = {
    ("audits:list", "state"): "SUCCEEDED",
    ("plans:list", "state"): "SUCCEEDED",
    ("plans:list", "plan"): "audit-000",
    ("plans:list", "audit"): "audit-000",
    ("actions:list", "target"): SERVER,
    ("actions:list", "action_plan"): "audit-00011",
    ("actions:list", "text"): SERVER,
    ("history:list", "user"): "user-7",
    ("history:list", "deed"): "action.skip",
    ("history:list", "object"): SERVER,
    ("history:list", "since"): "2020-01-01",
    ("history:list", "before"): "2020-01-01",
    ("history:list", "text"): "in use",
    ("cluster:servers", "name"): "server-0",
    ("cluster:servers", "node"): "compute-0001",
}
SEARCHES = (SERVER, "server", "audit-00011", "migrate", "user-7")


def named_uuid(name: str) -> UUID:
    """Return the UUID of a row that `tests.benchmarks.scale.rows` wrote."""
    return UUID(md5(name.encode()).hexdigest())  # noqa: S324 (no secret)


def works(installations: list[Installation]) -> Iterator[Work]:
    """Yield each request that is compared: the same ones in all installations."""
    for kind in (api_requests, console_requests):
        found = {}
        for installation in installations:
            with installation.in_use():
                found[installation.name] = list(kind(installation.token))
        for calls in zip(*found.values(), strict=True):
            name = calls[0][0]
            yield Work(name, {key: call for key, (_, call) in zip(found, calls, strict=True)})


def api_requests(token: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    client = Client(SERVER_NAME=HOST, headers={"X-Auth-Token": token, "OpenStack-API-Version": VERSION})
    for path in api_paths():
        yield path, partial(get, client, path)


def api_paths() -> Iterator[str]:
    """Yield the lists: with each sort key in both orders, from the beginning and from a marker in the middle."""
    values = {
        "plan": named_uuid(f"plan {SUCCEEDED}"),
        "audit": named_uuid("audit 12"),
        "server": named_uuid("server 1"),
        "user": named_uuid("user 7").hex,
        "project": named_uuid("project 7").hex,
        "middle": f"{timezone.now() - timedelta(days=180):%Y-%m-%dT%H:%M:%SZ}",
    }
    for path, filters in LISTS.items():
        view = resolve(path).func.cls  # type: ignore[attr-defined]
        yield from (f"{path}?{filter.format(**values)}&limit={LIMIT}" for filter in filters)
        for key, column in view.offer(MAXIMUM).sort_keys.items():
            marker = middle_of(view, column)
            for direction in ("asc", "desc"):
                sort = f"limit={LIMIT}&sort_key={key}&sort_dir={direction}"
                yield f"{path}?{sort}"
                yield f"{path}?{sort}&marker={marker}"
        yield f"{path}/detail?limit={LIMIT}"
        yield f"{path}/{marker}"


def middle_of(view: Any, column: str) -> UUID:
    """Return the UUID of the row in the middle of a list that is sorted by a column, or by the key for expressions."""
    rows = view.model.objects.order_by("pk" if column in view.sort_expressions else column, "pk")
    middle: UUID = rows.values_list("uuid", flat=True)[rows.count() // 2]
    return middle


def console_requests(_token: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    client = Client(SERVER_NAME=HOST)
    client.force_login(User.objects.get(username=rows.NAME))
    plans = [ActionPlan.objects.get(uuid=named_uuid(f"plan {number}")) for number in (RECOMMENDED, SUCCEEDED)]
    for page in pages(plans, CHOSEN):
        # The preflight of a plan reads its own actions only, and takes seconds. A project of the small installation
        # has fewer servers than a page. Operations that the state of the record does not allow redirect.
        if not page.name.startswith(("plans:preflight", "projects:")) and not is_redirected(client, page.path):
            yield page.path, partial(get, client, f"{page.path}{'&' if '?' in page.path else '?'}per_page={ROWS}")
    for text in SEARCHES:
        yield f"search for {text}", partial(get, client, f"/console/search/?{urlencode({'q': text})}")


def is_redirected(client: Client, path: str) -> bool:
    return client.get(path).status_code == HTTPStatus.FOUND


def get(client: Client, path: str) -> bytes:
    """Return the body of the answer to a request.

    Raises:
        RuntimeError: it did not succeed.
    """
    answer: Any = client.get(path)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    if answer.status_code != HTTPStatus.OK:
        raise RuntimeError(f"GET {path}: {answer.status_code} {body[:500].decode()}")
    return body
