"""The forms that mark objects as unhealthy, and remove the marks."""

from typing import Any, ClassVar

from django import forms
from django.http import QueryDict
from django.urls import reverse
from django.utils.functional import lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from cluster.models import Node, Server, Stack, StackResource
from cluster.models.stacks import MARKED
from plans.console.stacks.pages import resource_address, stack_page_address
from plans.operations.marks import REASON, mark
from watcher_site.console.resumable_forms import FormOperationView
from watcher_site.messages import STATUS_MESSAGE_LENGTH, translate_message
from watcher_site.request_context import caller_of

# The kinds of marked objects.
KINDS = {
    "server": _("Server %(name)s"),
    "node": _("Node %(name)s"),
    "stack": _("Stack %(name)s"),
    "resource": _("Resource %(name)s"),
}


class MarkForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=STATUS_MESSAGE_LENGTH,
        help_text=format_lazy(_("Default: “{reason}”"), reason=lazy(translate_message, str)(MARKED)),
    )

    def add_refusal(self, refusal: str) -> None:
        """Add a refusal to the reason if it concerns the reason, otherwise to the form."""
        name, _, text = refusal.partition(": ")
        self.add_error("reason" if name == REASON else None, text if name == REASON else refusal)


class MarkView(FormOperationView):
    """Marks a record as unhealthy, and redirects to its page."""

    verb, question = _("mark as unhealthy"), _("Mark as unhealthy?")
    look = "danger"
    unhealthy: ClassVar[bool] = True
    page: ClassVar[str]

    def form(self, record: Any, data: QueryDict | None = None) -> MarkForm:
        return MarkForm(data)

    def perform(self, record: Any) -> str:
        found = mark(record, self.unhealthy, self.submitted.cleaned_data["reason"], caller_of(self.request))
        if found.unhealthy is not self.unhealthy:
            text = _("%(object)s was not changed.")
        elif found.unhealthy:
            text = _("%(object)s is marked unhealthy.")
        else:
            text = _("%(object)s is no longer marked unhealthy.")
        return text % {"object": KINDS[found.object_type] % {"name": found.object_name}}

    def redirect_url(self, record: Any, done: bool) -> str:
        return reverse(self.page, args=[record.uuid])


class ClearMarkView(MarkView):
    """Removes the mark of a record."""

    verb, question, look = _("remove the mark"), _("Remove the mark?"), "primary"
    unhealthy = False


class MarkServer(MarkView):
    model, permission_required, page = Server, "cluster.mark_server", "cluster:server"
    consequence = _(
        "The mark does not change the server itself. A server of a stack or of a cluster node is replaced when the"
        " stack is updated or the node is recovered."
    )


class ClearServer(ClearMarkView):
    model, permission_required, page = Server, "cluster.mark_server", "cluster:server"
    consequence = _("The server itself is not changed.")


class MarkNode(MarkView):
    model, permission_required, page = Node, "cluster.mark_node", "cluster:member"
    consequence = _("The node is set to ERROR, whatever the state of its server. It is recovered or removed first.")


class ClearNode(ClearMarkView):
    model, permission_required, page = Node, "cluster.mark_node", "cluster:member"
    consequence = _(
        "The node is set to ACTIVE if it has a server. Check the node to find out whether the server runs."
    )


class StackRedirectMixin:
    model, permission_required = Stack, "cluster.mark_stack"

    def redirect_url(self, record: Stack, done: bool) -> str:
        return stack_page_address(record)


class ResourceRedirectMixin:
    """A mixin that redirects to the place of a resource in the tree of its stack."""

    model, permission_required, policy = StackResource, "cluster.mark_stack", "resource:mark"

    def redirect_url(self, record: StackResource, done: bool) -> str:
        return resource_address(record)


class MarkStack(StackRedirectMixin, MarkView):
    consequence = _("All resources of the stack are replaced by its next update.")


class ClearStack(StackRedirectMixin, ClearMarkView):
    consequence = _("The stack is no longer marked as a whole. The marks of its resources remain.")


class MarkResource(ResourceRedirectMixin, MarkView):
    history_event = "resource.mark"
    consequence = _(
        "The resource, with all resources in it, is replaced by the next update of the stack. It keeps its name."
    )


class ClearResource(ResourceRedirectMixin, ClearMarkView):
    history_event = "resource.clear"
    consequence = _("The next update of the stack no longer replaces the resource.")
