"""The navigation of the console: its links in groups, and the current one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import template
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from watcher_site.authorization.enforcement import known_projects
from watcher_site.authorization.permissions import may, target_of_page
from watcher_site.web.addresses import fixed_address

Text = str | Promise

register = template.Library()


# Links are compared by identity: a comparison of their labels would translate these.
@dataclass(frozen=True, eq=False)
class Place:
    """A link of the navigation. Pages below its address belong to it."""

    label: Text
    name: str
    permission: str = ""
    one_of: tuple[str, ...] = ()
    """Permissions of which one is sufficient."""
    further_paths: tuple[str, ...] = ()
    """Further paths within the console whose pages belong to it."""
    replaces: str = ""
    """The permission of users who have other pages instead.

    Other users see this link if they are members of projects.
    """
    key: str = ""
    """The key that follows g in the keyboard shortcut (`shortcuts.js`)."""

    def is_for(self, user: Any, target: Mapping[str, Any]) -> bool:
        """Return whether the navigation of a user contains this link."""
        if self.replaces:
            return user.is_authenticated and not may(user, self.replaces) and bool(known_projects(user))
        if self.one_of:
            return any(may(user, permission, target) for permission in self.one_of)
        return not self.permission or may(user, self.permission, target)

    @property
    def address(self) -> str:
        return fixed_address(self.name)

    def match(self, path: str) -> int:
        """Return the length of the part of a path that belongs to this link; 0 if the page does not."""
        console = fixed_address("home")
        if self.address == console:
            return len(path) if path == console else 0
        prefixes = (self.address, *(f"{console}{other}" for other in self.further_paths))
        return max((len(prefix) for prefix in prefixes if path.startswith(prefix)), default=0)


@dataclass(frozen=True)
class Group:
    label: Text
    places: tuple[Place, ...]


PARTS_OF_TRENDS = ("plans.view_actionplan", "cluster.view_computenode", "cluster.view_server")
GROUPS = (
    Group("", (Place(_("Overview"), "home", key="o"), Place(_("Trends"), "trends", one_of=PARTS_OF_TRENDS))),
    Group(
        _("Optimize"),
        (
            Place(_("Audits"), "audits:list", "audits.view_audit", key="a"),
            Place(_("Action plans"), "plans:list", "plans.view_actionplan", key="p"),
            Place(_("Actions"), "actions:list", "actions.view_action", key="t"),
            Place(_("Exclusions"), "exclusions:list", "actions.view_exclusion"),
        ),
    ),
    Group(
        _("Infrastructure"),
        (
            Place(_("Compute nodes"), "cluster:nodes", "cluster.view_computenode", key="n"),
            Place(
                _("Servers"),
                "cluster:servers",
                "cluster.view_server",
                further_paths=("audits/waiting/", "marks/servers/"),
                key="s",
            ),
            Place(_("Clusters"), "clusters:list", "cluster.view_cluster", further_paths=("marks/nodes/",), key="c"),
            Place(
                _("Stacks"),
                "stacks:list",
                "cluster.view_stack",
                further_paths=("marks/stacks/", "marks/resources/"),
                key="k",
            ),
        ),
    ),
    Group(
        _("My projects"),
        (
            Place(_("Project servers"), "projects:servers", replaces="cluster.delete_server"),
            Place(_("Project clusters"), "projects:clusters", replaces="cluster.delete_cluster"),
            Place(_("Project stacks"), "projects:stacks", replaces="cluster.delete_stack"),
        ),
    ),
    Group(
        _("Record"),
        (
            Place(_("History"), "history:list", "watcher_site.view_historyentry", key="h"),
            Place(_("Notifications"), "notifications:list", "watcher_site.view_subscription"),
        ),
    ),
)
ADMINISTRATION = (Place(_("Users"), "users:list", "watcher_site.manage_users"), Place(_("API"), "documentation"))
ACCOUNT = Place(_("Account"), "account:page")


def list_places() -> Iterator[Place]:
    for group in GROUPS:
        yield from group.places
    yield from (*ADMINISTRATION, ACCOUNT)


def find_place(path: str) -> Place | None:
    """Return the link that the page of a path belongs to, if any."""
    place = max(list_places(), key=lambda one: one.match(path))
    return place if place.match(path) else None


@register.inclusion_tag("_navigation.html", takes_context=True)
def navigation(context: Any, is_found: bool = True) -> dict[str, Any]:
    """Show the links that the user may see, with the current one marked.

    Args:
        is_found: whether the address of the request has a page; otherwise no link is marked.
    """
    request: HttpRequest = context["request"]

    def select(places: tuple[Place, ...]) -> list[Place]:
        target = target_of_page(request)
        return [one for one in places if one.is_for(request.user, target)]

    groups = [(group.label, places) for group in GROUPS if (places := select(group.places))]
    current = find_place(request.path) if is_found else None
    return {
        "request": request,
        "user": request.user,
        "groups": groups,
        "administration": select(ADMINISTRATION),
        "account": ACCOUNT,
        "searched": context.get("searched", ""),
        "current": current,
        # They are on the page twice, for wide and for narrow screens.
        "places": render_to_string("navigation/_places.html", {"groups": groups, "current": current}),
    }
