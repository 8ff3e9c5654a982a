"""Microversions: their history and headers, and the version that a request uses."""

import re
from functools import cache, lru_cache
from typing import Any, cast

from django.http.request import HttpHeaders
from rest_framework.exceptions import NotAcceptable, ParseError
from rest_framework.request import Request
from rest_framework.versioning import BaseVersioning

Version = tuple[int, int]

# The first version that refuses invalid requests which other servers of this API accept.
STRICT: Version = (1, 8)
# The first version with extensions to the API of OpenStack Watcher.
EXTENDED: Version = (1, 12)
# The first version in which clusters and nodes belong to projects.
TENANTS: Version = (1, 15)
# The first version in which profiles belong to projects.
PROFILES: Version = (1, 16)
# The first version in which users approve action plans, and subscriptions send e-mail and chat messages.
APPROVALS: Version = (1, 17)
RECEIVERS = APPROVALS

# The changes of each version, from which the minimum, the maximum and the documentation are derived.
HISTORY: dict[Version, tuple[str, ...]] = {
    (1, 0): ("The first version of the `infra-optim` API.",),
    (1, 1): ("Audits have a `start_time` and an `end_time`.",),
    (1, 2): ("Audits have `force`: they run although an action plan is ONGOING.",),
    (1, 3): ("`GET /v1/data_model` returns the cluster model.",),
    (1, 4): ("`POST /v1/webhooks/{audit}` triggers an EVENT audit.",),
    (1, 5): (
        "`PATCH /v1/actions/{uuid}` skips an action.",
        "Actions, action plans and audits have a `status_message`.",
    ),
    (1, 6): ("The data model has `server_pinned_az` and `server_flavor_extra_specs` for each server.",),
    (1, 7): ("Audit templates have `default_parameters`.",),
    (1, 8): (
        "`/v1/servers` lists, creates, rebuilds, resets and deletes servers. Members of projects can use those of"
        " their projects.",
        "`GET /v1/servers/{id}/os-instance-actions` lists the operations on a server, and"
        " `GET /v1/actions/{id}/events` the events of an action.",
        "`GET /v1/data_model?data_model_type=storage` returns the storage model.",
        "Scoring engines have `created_at`, `updated_at` and `deleted_at`.",
        "`PATCH /v1/audits/{audit}` refuses an `interval`, a `start_time` or an `end_time` for a ONESHOT audit and for"
        " an audit that has ended.",
    ),
    (1, 9): ("Events have `details`, such as the reason of a failure, for users who can read them.",),
    (1, 10): ("Servers that wait for capacity have the status PENDING. Before, they are shown as ERROR.",),
    (1, 11): (
        "`/v1/stacks` lists, creates, updates and deletes stacks, trees of servers, groups and nested stacks, and"
        " `/v1/stacks/{name}/{id}/resources` lists their resources. Members of projects can use those of their"
        " projects.",
        "`/v1/servers/{id}/health`, `/v1/stacks/{name}/{id}/health` and"
        " `PATCH /v1/stacks/{name}/{id}/resources/{resource}` mark an object as unhealthy or clear the mark. Servers"
        " have an `unhealthy_reason`.",
    ),
    EXTENDED: (
        "`POST /v1/action_plans/{uuid}/skip` and `/restore` skip and restore several actions;"
        " `PATCH /v1/actions/{uuid}` restores one.",
        "Actions have the properties of Senlin's actions (`name`, `target`, `status`, `owner`, `depended_by` …). They"
        " are filtered and sorted by `name`, `target`, `action` and `status`, sorted by several keys (`sort`), and"
        " identified also by name or by the beginning of the UUID.",
        "`PATCH` changes the `depends_on` of actions and the `on_failure` of action plans until the plan begins.",
        "`POST /v1/action_plans/{uuid}/start` takes a start time and a maintenance window, which `/schedule` changes.",
        "`POST /v1/action_plans/{uuid}/continue` creates a plan of the unfinished actions of a FAILED or CANCELLED"
        " plan.",
        "`POST /v1/actions/{id}/signal` and `POST /v1/action_plans/{uuid}/signal` cancel, suspend and resume. Actions"
        " have `control` and the state SUSPENDED, which is shown as ONGOING before; action plans have `suspended_by`.",
        "`GET /v1/action_plans/{uuid}/preflight` predicts which actions would be skipped or fail.",
        "`/v1/profiles`, `/v1/nodes` and `/v1/clusters` manage clusters of servers. Nodes have `/health` and an"
        " `unhealthy_reason`.",
        "`/v1/policies` contains the rules for operations on clusters, and `/v1/policy_types` their types.",
    ),
    (1, 13): (
        "`/v1/history` lists the events of history, and `/v1/history/export` exports them as CSV or JSON lines.",
        "`/v1/exclusions` contains the rules that keep actions from being executed; `/try` tests a rule on a plan."
        " Actions have the `exclusion_uuid` of the rule that skipped them.",
        "`/v1/subscriptions` sends notifications to webhooks; `/v1/undelivered` lists and resends undelivered"
        " notifications; `/v1/broker` shows the state of the message broker.",
    ),
    (1, 14): (
        "Events of history have the `user_id` of a user of Keystone, which is also a filter.",
        "`/v1/tokens` lists, creates and revokes tokens of the site.",
    ),
    TENANTS: (
        "Clusters and nodes belong to a project (`project_id`). Members can use those of their projects.",
        "Profiles and templates of stacks describe the key pair, networks, security groups, user data, config drive,"
        " block devices, scheduler hints and tags of servers.",
    ),
    PROFILES: (
        "Profiles belong to a project (`project_id`) or to none. Members can use those of their projects, and see"
        " those of no project.",
    ),
    APPROVALS: (
        "`POST /v1/action_plans/{uuid}/approve` and `/withdraw_approval` approve the start of an action plan by"
        " another user, and withdraw the approval. Action plans have `approved_by` and `approved_at`.",
        "Subscriptions have a `kind` (`webhook`, `mail`, `slack`) and `addresses` of e-mail. Before, only webhooks are"
        " shown.",
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
    """Return the version that a text names, or 1.0 for an invalid text, as OpenStack's servers do.

    Raises:
        NotAcceptable: the version is not supported.
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
    """Return the version for this service in a header such as ``compute 2.1, infra-optim 1.3``: the last one."""
    requested = None
    for item in (header or "").split(","):
        service, _, version = item.strip().partition(" ")
        if service == SERVICE:
            requested = version.strip()
    return requested


def version_in_accept(accept: str | None) -> str | None:
    """Return the version in an Accept header such as ``application/json; version=1.3``."""
    found = re.findall(r";\s*version\s*=\s*\"?([^\s;,\"]+)", accept or "")
    return found[-1] if found else None


@lru_cache(100)
def requested_version(header: str | None, accept: str | None) -> Version:
    """Return the version that the two headers request, by default the lowest one.

    Raises:
        NotAcceptable: the version is not supported.
        ParseError: the headers request different versions.
    """
    found = (version_in_header(header), version_in_accept(accept))
    requested = {parse(version) for version in found if version is not None}
    if len(requested) > 1:
        raise ParseError(f"{HEADER} and Accept ask for different versions.")
    return requested.pop() if requested else MINIMUM


class HeaderVersioning(BaseVersioning):
    """The microversion of a request, from one of the two headers (docs/compatibility.md, "Microversions")."""

    default_version = format_version(MINIMUM)

    def determine_version(  # type: ignore[override]
        self, request: Request, *args: Any, **kwargs: Any
    ) -> Version:
        return requested_version(request.META.get(HEADER_IN_META), request.META.get("HTTP_ACCEPT"))


def used_by(request: Request) -> Version:
    """Return the version of a request as a pair of numbers. Texts would sort 1.10 before 1.9."""
    return cast("Version", request.version)


@cache
def response_headers(version: Version | None) -> dict[str, str]:
    """Return the version headers of each response of the API, including errors."""
    headers = {MINIMUM_HEADER: format_version(MINIMUM), MAXIMUM_HEADER: format_version(MAXIMUM)}
    if version is not None:
        headers[HEADER] = f"{SERVICE} {format_version(version)}"
    return headers
