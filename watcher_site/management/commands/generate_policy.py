"""``manage.py generate_policy``: print a policy file with the default rules."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from django.urls import get_resolver
from django.utils.regex_helper import normalize

from watcher_site.accounts.users import MANAGE
from watcher_site.api.mounts import MountedView
from watcher_site.api.permissions import OwnedByProjects, required
from watcher_site.api.urls import urlpatterns
from watcher_site.authorization.enforcement import BY_BODY
from watcher_site.configuration.policies import ADMIN, EVENT_DETAILS, NOVA, SYSTEM_READER
from watcher_site.processes import commands

# The policies of parts of requests, and of console pages without a corresponding request of the API.
RULES_OF_PARTS = (
    ("stacks:global_index", "right:cluster.view_stack", "lists of Heat's API with global_tenant"),
    ("user:manage", f"right:{MANAGE}", "the pages of users in the console"),
)
SAFE = {"get", "head", "options"}
READER_RULE, MEMBER_RULE = "project_reader", "project_member"
MEMBERS = "right:member and project_id:%(project_id)s"
BASE = {
    MEMBER_RULE: MEMBERS,
    READER_RULE: f"({MEMBERS}) or (right:project-reader and project_id:%(project_id)s)",
}
DETAILS = "right:actions.view_event_details"
DETAIL_RULES = {ADMIN: DETAILS, SYSTEM_READER: f"{DETAILS} or right:actions.view_action"}


def default_rules() -> dict[str, tuple[str, list[str]]]:
    """Return for each policy the default rule, which is equivalent to the permissions, and the requests it decides."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name, rule, request in sorted([*rules_of_routes(), *rules_of_mounts(), *RULES_OF_PARTS]):
        found.setdefault(name, (rule, []))[1].append(request)
    return found


def rules_of_routes() -> Iterator[tuple[str, str, str]]:
    for pattern in urlpatterns:
        callback: Any = pattern.callback
        for verb, action in getattr(callback, "actions", {}).items():
            view = callback.cls(**callback.initkwargs)
            view.action, view.request = action, None
            request: Any = SimpleNamespace(method=verb.upper())
            rule = getattr(view, "default_rule", f"right:{required(request, view) or BY_BODY}")
            if isinstance(view, OwnedByProjects):
                rule += f" or rule:{READER_RULE if verb in SAFE else MEMBER_RULE}"
            yield view.policy_name(), rule, f"{verb.upper()} /v1/{path_of(pattern)}"


def rules_of_mounts() -> Iterator[tuple[str, str, str]]:
    for mount in get_resolver().url_patterns:
        for pattern in getattr(mount, "url_patterns", ()):
            view = getattr(pattern.callback, "view_class", None)
            if view and issubclass(view, MountedView) and hasattr(view, "policy"):
                for method, name in {"GET": view.policy, **view.policies}.items():
                    rule = READER_RULE if method.lower() in SAFE else MEMBER_RULE
                    permission = view.permissions.get(method, view.permissions["GET"])
                    prefix = re.findall(r"\w+", str(mount.pattern))[0]
                    yield name, f"right:{permission} or rule:{rule}", f"{method} /{prefix}/{path_of(pattern)}"


def path_of(pattern: Any) -> str:
    """Return the path of a URL pattern, with its parameters in braces."""
    path, parameters = normalize(str(pattern.pattern))[0]
    return str(path % {name: f"{{{name}}}" for name in parameters})


def known_policies() -> set[str]:
    """Return the names of rules that a policy file may contain, besides those that other rules refer to."""
    return {*default_rules(), *BASE, EVENT_DETAILS, NOVA + EVENT_DETAILS}


class Command(commands.Command):
    help = "Print a policy file with the default rules, commented out."
    acts_for_person = False

    def handle(self, *args: Any, **options: Any) -> None:
        for name, rule in BASE.items():
            self.stdout.write(f'"{name}": "{rule}"\n')
        for name, (rule, requests) in default_rules().items():
            self.stdout.write(f'\n# {", ".join(sorted(set(requests)))}\n#"{name}": "{rule}"\n')
        self.stdout.write(f'\n# why an event failed\n#"{EVENT_DETAILS}": "{DETAIL_RULES[SYSTEM_READER]}"\n')
