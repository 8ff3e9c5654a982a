"""Microversions: which there are, what each brings, and which one a request asks for."""

import re
from functools import cache, lru_cache
from typing import Any, cast

from django.http.request import HttpHeaders
from rest_framework.exceptions import NotAcceptable, ParseError
from rest_framework.request import Request
from rest_framework.versioning import BaseVersioning

Version = tuple[int, int]

# The first that refuses invalid requests that other servers of this service accept.
STRICT: Version = (1, 8)
# The first that has what other servers of this service do not.
EXTENDED: Version = (1, 12)
# The first in which clusters and nodes belong to projects.
TENANTS: Version = (1, 15)
# The first in which profiles belong to projects.
PROFILES: Version = (1, 16)

# The one table that the rest follows from: minimum, maximum, documentation, and what `Meta.since` may name.
HISTORY: dict[Version, str] = {
    (1, 0): "The API as OpenStack's infra-optim clients have known it from the beginning.",
    (1, 1): "Audits have a `start_time` and an `end_time`.",
    (1, 2): "Audits have `force`: they run although an action plan is ONGOING.",
    (1, 3): "`GET /v1/data_model` shows the cluster model.",
    (1, 4): "`POST /v1/webhooks/{audit}` triggers an EVENT audit.",
    (1, 5): "`PATCH /v1/actions/{uuid}` skips an action; actions, action plans and audits have a `status_message`.",
    (1, 6): "The data model shows each server's `server_pinned_az` and `server_flavor_extra_specs`.",
    (1, 7): "Audit templates have `default_parameters`.",
    (1, 8): (
        "`/v1/servers`: list and show servers, ask for new ones, rebuild, reset and delete them; people without rights"
        " on all servers see and handle those of their projects. `GET /v1/servers/{id}/os-instance-actions` tells what"
        " was done to a server, and `GET /v1/actions/{id}/events` what the phases of an action did."
        " `GET /v1/data_model?data_model_type=storage` shows the storage model; scoring engines have `created_at`,"
        " `updated_at` and `deleted_at`. `PATCH /v1/audits/{audit}` refuses an `interval`, a `start_time` or an"
        " `end_time` for a ONESHOT audit and for one that has ended."
    ),
    (1, 9): "Events have `details`, why they failed, for those who have the right to see them.",
    (1, 10): "Servers that wait for room are PENDING; before, they read ERROR.",
    (1, 11): (
        "`/v1/stacks`: named trees of servers, of groups of them and of stacks within, created, updated and deleted by"
        " plans as a template says; `/v1/stacks/{name}/{id}/resources` tell what is in them. People without rights on"
        " all stacks see and handle those of their projects."
        " `PATCH /v1/servers/{id}/health` says that a server is unhealthy, or takes that back, and servers have an"
        " `unhealthy_reason`; nodes have both with 1.12."
        " So do `PATCH /v1/stacks/{name}/{id}/resources/{resource}`, and `/v1/stacks/{name}/{id}/health` for a whole"
        " stack."
    ),
    EXTENDED: (
        "`POST /v1/action_plans/{uuid}/skip` and `/restore` skip a set of actions, or restore what a person skipped;"
        " `PATCH /v1/actions/{uuid}` restores one. Actions have the properties of the cluster service's actions"
        " (`name`, `target`, `status`, `owner`, `depended_by` …), can be filtered and sorted by `name`, `target`,"
        " `action` and `status`, and by several keys at once (`sort`), and can be got by name"
        " or the beginning of the UUID. `POST /v1/action_plans/{uuid}/continue` makes a plan of what a FAILED or"
        " CANCELLED one left undone. Action plans have `on_failure`, which can be patched until they begin, as"
        " can what an action depends on."
        " `POST /v1/action_plans/{uuid}/start` takes a time and a maintenance window, which `/schedule` sets and"
        " changes."
        " `POST /v1/actions/{id}/signal` and `POST /v1/action_plans/{uuid}/signal` have what runs end, wait or go on:"
        " the state SUSPENDED, which reads ONGOING before, `control` of actions, `suspended_by` of action plans."
        " `GET /v1/action_plans/{uuid}/preflight` tells what of a plan would be skipped or fail now."
        " `/v1/profiles` describe the servers that clusters are made of,"
        " `/v1/nodes` have each of them created, changed, checked, recovered and deleted by an action,"
        " `/v1/clusters` have sets of them grow, shrink and be repaired."
        " `/v1/policies` hold rules for these operations, of the types in `/v1/policy_types`."
    ),
    (1, 13): (
        "`/v1/history` tells who did what and when, and `/v1/history/export` gives it as CSV or JSON lines."
        " `/v1/exclusions` hold rules that keep actions from being executed: of some types, on some servers, compute"
        " nodes, aggregates, zones, projects or clusters, in some hours, while they are `enabled`; `/try` tells"
        " what a rule excludes of a plan. Actions have the `exclusion_uuid` of the rule that skipped them."
        " `/v1/subscriptions` have notifications sent to webhooks; `/v1/undelivered` shows those that were given up,"
        " and has them sent again; `/v1/broker` tells how the message broker fares."
    ),
    (1, 14): (
        "Events of history have the `user_id` that Keystone has for a user, and are filtered by it."
        " `/v1/tokens` lists, creates and revokes tokens of the site."
    ),
    TENANTS: (
        "Clusters and their nodes belong to a project, `project_id`: people without rights on all clusters see and"
        " handle those of their projects. Profiles and templates of stacks describe the key pair, networks, security"
        " groups, user data, config drive, block devices, scheduler hints and tags of servers."
    ),
    PROFILES: (
        "Profiles belong to a project, `project_id`, or to none: people without rights on all profiles see and handle"
        " those of their projects, and see those of none, which all projects may use."
    ),
}
MINIMUM, MAXIMUM = min(HISTORY), max(HISTORY)
SERVICE = "infra-optim"
HEADER = "OpenStack-API-Version"
HEADER_IN_META = HttpHeaders.to_wsgi_name(HEADER)
MINIMUM_HEADER = "OpenStack-API-Minimum-Version"
MAXIMUM_HEADER = "OpenStack-API-Maximum-Version"


def format_version(version: Version) -> str:
    return ".".join(map(str, version))


RANGE = f"[{format_version(MINIMUM)}, {format_version(MAXIMUM)}]"


def parse(requested: str) -> Version:
    """Return the version that a text names; 1.0 for a text that names none, as existing servers answer.

    Raises:
        NotAcceptable: it names a version that is not served.
    """
    if requested.lower() == "latest":
        return MAXIMUM
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", requested):
        return MINIMUM
    numbers = tuple(map(int, requested.split(".")))
    if numbers == MINIMUM[:1]:
        return MINIMUM
    if numbers not in HISTORY:
        raise NotAcceptable(refusal(requested, numbers))
    return numbers


def refusal(requested: str, numbers: tuple[int, ...]) -> str:
    supported = f"The supported version range is: {RANGE}."
    if len(numbers) != len(MINIMUM):
        return f"Invalid value for {HEADER} header. {supported}"
    if numbers[0] == MINIMUM[0]:
        return f"Version {requested} was requested but the minor version is not supported by this service. {supported}"
    return (
        "Mutually exclusive versions requested. "
        f"Version {requested} requested but not supported by this service. {supported}"
    )


def version_in_header(header: str | None) -> str | None:
    """Return what ``compute 2.1, infra-optim 1.3`` asks of us; the last word wins."""
    requested = None
    for item in (header or "").split(","):
        service, _, version = item.strip().partition(" ")
        if service == SERVICE:
            requested = version.strip()
    return requested


def version_in_accept(accept: str | None) -> str | None:
    """Return what ``application/json; version=1.3`` asks for."""
    found = re.findall(r";\s*version\s*=\s*\"?([^\s;,\"]+)", accept or "")
    return found[-1] if found else None


@lru_cache(100)
def requested_version(header: str | None, accept: str | None) -> Version:
    """Return the version that the two headers ask for, or the lowest one if they ask for none.

    Raises:
        NotAcceptable: it is not served.
        ParseError: they ask for different versions.
    """
    found = (version_in_header(header), version_in_accept(accept))
    requested = {parse(version) for version in found if version is not None}
    if len(requested) > 1:
        raise ParseError(f"{HEADER} and Accept ask for different versions.")
    return requested.pop() if requested else MINIMUM


class HeaderVersioning(BaseVersioning):
    """The microversion of a request, from either header (docs/compatibility.md, "Microversions")."""

    default_version = format_version(MINIMUM)

    def determine_version(  # type: ignore[override]
        self, request: Request, *args: Any, **kwargs: Any
    ) -> Version:
        return requested_version(request.META.get(HEADER_IN_META), request.META.get("HTTP_ACCEPT"))


def used_by(request: Request) -> Version:
    """Return the version that a request is answered in, as a pair of numbers: texts would put 1.10 before 1.9."""
    return cast("Version", request.version)


@cache
def response_headers(version: Version | None) -> dict[str, str]:
    """Return the headers that each answer of the API carries, errors too."""
    headers = {MINIMUM_HEADER: format_version(MINIMUM), MAXIMUM_HEADER: format_version(MAXIMUM)}
    if version is not None:
        headers[HEADER] = f"{SERVICE} {format_version(version)}"
    return headers
