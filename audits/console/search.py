"""The search for objects of all kinds by name, UUID or the beginning of a UUID."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.validators import MinLengthValidator
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from django.views.generic import TemplateView

from actions.console.lookups import action_conditions
from actions.models import Action
from audits.models import Audit
from cluster.models import Cluster, ComputeNode, Node, Profile, Server, Stack
from plans.console.tables import plan_condition
from plans.models import ActionPlan
from watcher_site.authorization.enforcement import projects_by
from watcher_site.console.history import PERMISSION as HISTORY
from watcher_site.console.lists.entries import object_condition, request_condition
from watcher_site.console.lists.filters import LONGEST, bounds_of, name_condition
from watcher_site.console.pages import ConsistentReadsMixin, Page
from watcher_site.history.event_labels import describe_event
from watcher_site.messages import Text
from watcher_site.models import HistoryEntry
from watcher_site.templatetags.console import head

# The number of results in each group.
SHOWN = 5
SHORTEST = 2


class SearchForm(forms.Form):
    q = forms.CharField(
        label=_("Search"),
        max_length=LONGEST,
        validators=[
            MinLengthValidator(
                SHORTEST,
                ngettext_lazy(
                    "Enter at least %(limit_value)d character.",
                    "Enter at least %(limit_value)d characters.",
                    "limit_value",
                ),
            )
        ],
    )


@dataclass(frozen=True)
class Result:
    name: str
    address: str
    uuid: Any = None
    state: str = ""
    note: str = ""
    moment: Any = None


@dataclass(frozen=True)
class Group:
    """The first results of one kind, and the address of the list with all of them."""

    label: Text
    results: list[Result]
    list_address: str


@dataclass(frozen=True)
class Kind:
    """A kind of objects that are searched by name.

    Attributes:
        page, list_page: the names of the page of one object, and of the list.
        parameter: the filter of the list for the searched text.
        describe: returns the state and a note of an object.
        project_pages: the policy and the two pages for members of projects without the permission.
    """

    label: Text
    model: Any
    permission: str
    page: str
    list_page: str
    describe: Callable[[Any], tuple[str, str]]
    column: str = "name"
    parameter: str = "name"
    related: tuple[str, ...] = ()
    project_pages: tuple[str, str, str] = ("", "", "")

    def pages_for(self, search: "Search") -> tuple[str, str, Q] | None:
        """Return the pages that the user may see, and the condition for their objects, or None."""
        if search.may(self.permission):
            return self.page, self.list_page, Q()
        policy, page, list_page = self.project_pages
        projects = projects_by(policy, search.request.user) if policy else ()
        return (page, list_page, Q(project_id__in=projects)) if projects else None

    def find(self, text: str, condition: Q) -> QuerySet[Any]:
        """Return the objects that match by name or UUID. Exact matches come first."""
        bounds = bounds_of(text)
        exact = Q(**{f"{self.column}__iexact": text}) | (Q(uuid__range=bounds) if bounds else Q())
        begins = Q(**{f"{self.column}__istartswith": text})
        rank = Case(
            When(exact, then=Value(0)), When(begins, then=Value(1)), default=Value(2), output_field=IntegerField()
        )
        records = self.model.objects.present().filter(condition, name_condition(text, self.column))
        if self.model is Stack:
            records = records.roots()
        return records.select_related(*self.related).order_by(rank, self.column, "-pk")


KINDS = (
    Kind(
        _("Audits"),
        Audit,
        "audits.view_audit",
        "audits:detail",
        "audits:list",
        lambda audit: (audit.state, audit.audit_type),
    ),
    Kind(
        _("Compute nodes"),
        ComputeNode,
        "cluster.view_computenode",
        "cluster:node",
        "cluster:nodes",
        lambda node: (node.state, node.zone),
        column="hostname",
        parameter="hostname",
    ),
    Kind(
        _("Servers"),
        Server,
        "cluster.view_server",
        "cluster:server",
        "cluster:servers",
        lambda server: (server.state, server.project_id),
        project_pages=("server:get_all", "projects:server", "projects:servers"),
    ),
    Kind(
        _("Clusters"),
        Cluster,
        "cluster.view_cluster",
        "clusters:detail",
        "clusters:list",
        lambda cluster: (cluster.status, cluster.project_id),
        project_pages=("cluster:get_all", "projects:cluster", "projects:clusters"),
    ),
    Kind(
        _("Nodes of clusters"),
        Node,
        "cluster.view_node",
        "cluster:member",
        "cluster:members",
        lambda node: (node.status, node.cluster.name if node.cluster else ""),
        related=("cluster",),
    ),
    Kind(
        _("Stacks"),
        Stack,
        "cluster.view_stack",
        "stacks:detail",
        "stacks:list",
        lambda stack: (stack.status, stack.project_id),
        project_pages=("stack:get_all", "projects:stack", "projects:stacks"),
    ),
    Kind(
        _("Profiles"),
        Profile,
        "cluster.view_profile",
        "cluster:profile",
        "cluster:profiles",
        lambda profile: ("", profile.project_id or ""),
    ),
)


class Search(Page, ConsistentReadsMixin, TemplateView):
    """The page of results. The number of queries only depends on the permissions of the user."""

    permission_required = ()
    template_name = "search.html"

    def has_permission(self) -> bool:
        """Allow all logged-in users. Objects that they may not view are not found."""
        return self.request.user.is_authenticated

    def get(self, request: HttpRequest, *arguments: Any, **path: Any) -> HttpResponse:
        form = SearchForm(request.GET if "q" in request.GET else None)
        groups = list(self.search(form.cleaned_data["q"])) if form.is_valid() else []
        target = find_single_match(groups, form.cleaned_data["q"]) if groups else None
        if target:
            return redirect(target)
        # Texts are truncated to the maximum length.
        shown = str(request.GET.get("q", ""))[:LONGEST].replace("\0", "")
        return self.render_to_response(self.get_context_data(form=form, groups=groups, searched=shown, **path))

    def search(self, text: str) -> Iterator[Group]:
        """Yield the groups with results."""
        groups = [self.find_plans(text), self.find_actions(text), *self.find_named(text), *self.find_history(text)]
        return (group for group in groups if group and group.results)

    def find_plans(self, text: str) -> Group | None:
        if not self.may("plans.view_actionplan"):
            return None
        plans = ActionPlan.objects.present().with_names().filter(plan_condition(text)).order_by("-pk")[:SHOWN]
        return make_group(
            _("Action plans"),
            (
                Result(
                    plan.called or str(_("Action plan")), object_address("plans:detail", plan), plan.uuid, plan.state
                )
                for plan in plans
            ),
            filtered_list_address("plans:list", plan=text),
        )

    def find_actions(self, text: str) -> Group | None:
        """Return the newest actions. Each condition is a separate query, so that it can use an index."""
        if not self.may("actions.view_action"):
            return None
        by_key: dict[int, Action] = {}
        for condition in action_conditions(text):
            actions = Action.objects.present().filter(condition).select_related("action_plan")
            by_key |= {action.pk: action for action in actions.order_by("-pk")[:SHOWN] if action.pk not in by_key}
        return make_group(
            _("Actions"),
            (
                Result(match.called, object_address("actions:detail", match), match.uuid, match.state)
                for match in by_key.values()
            ),
            filtered_list_address("actions:list", text=text),
        )

    def find_named(self, text: str) -> Iterator[Group]:
        for kind in KINDS:
            pages = kind.pages_for(self)
            if pages is None:
                continue
            name, list_name, condition = pages
            results = (
                Result(getattr(record, kind.column), object_address(name, record), record.uuid, *kind.describe(record))
                for record in kind.find(text, condition)[:SHOWN]
            )
            yield make_group(kind.label, results, filtered_list_address(list_name, **{kind.parameter: text}))

    def find_history(self, text: str) -> Iterator[Group]:
        """Yield the newest entries of an object, by its UUID or name, and of a request."""
        if not self.may(HISTORY):
            return
        for label, parameter, condition in (
            (_("History"), "object", object_condition(text)),
            (_("Requests"), "request_id", request_condition(text)),
        ):
            address = filtered_list_address("history:list", **{parameter: text})
            entries = HistoryEntry.objects.filter(condition).order_by("-pk")[:SHOWN]
            yield make_group(label, (make_result(entry, address) for entry in entries), address)


def make_result(entry: HistoryEntry, address: str) -> Result:
    note = (
        f"{entry.object_name} · {entry.user}" if entry.object_name and entry.user else entry.object_name or entry.user
    )
    return Result(head(describe_event(entry.deed)), address, note=note, moment=entry.created_at)


def object_address(name: str, record: Any) -> str:
    return reverse(name, args=[record.uuid])


def filtered_list_address(name: str, /, **filters: str) -> str:
    return f"{reverse(name)}?{urlencode(filters)}"


def make_group(label: Text, results: Iterable[Result], list_address: str) -> Group:
    return Group(label, list(results)[:SHOWN], list_address)


def find_single_match(groups: Iterable[Group], text: str) -> str | None:
    """Return the address of the only object whose UUID begins with the text, unless names contain it, too."""
    if not bounds_of(text):
        return None
    digits = text.replace("-", "").lower()
    results = [result for group in groups for result in group.results if result.uuid]
    identified = [result for result in results if result.uuid.hex.startswith(digits)]
    if len(identified) != 1:
        return None
    # The name of an action may consist of its type and the UUID of its object.
    names = (result.name.lower().replace(str(identified[0].uuid), "") for result in results)
    return None if any(text.lower() in name for name in names) else identified[0].address
