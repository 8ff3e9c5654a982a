"""The console's forms for operations on clusters and nodes."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from cluster.models import Cluster, Node, PolicyBinding
from plans.api.operations import trust_of
from plans.console.clusters.forms import (
    AttachForm,
    ChangeForm,
    DeleteForm,
    OperationForm,
    RecoverClusterForm,
    RecoverForm,
    ResizeForm,
    ScaleForm,
)
from plans.operations.base import Operation, RequestOptions
from plans.operations.cluster_policies import attach_policy, detach_policy, update_policy
from plans.operations.clusters import (
    check_cluster,
    delete_cluster,
    recover_cluster,
    resize,
    scale_in,
    scale_out,
    update_cluster,
)
from plans.operations.nodes import check_node, delete_node, recover_node
from watcher_site.console.resumable_forms import FormOperationView
from watcher_site.request_context import caller_of
from watcher_site.templatetags.console import linked


class OperationFormView(FormOperationView):
    """A page with a ``form_class``. It plans the operation with ``operate``, and links the plan in a message."""

    form_class: ClassVar[type[OperationForm]] = OperationForm
    operate: ClassVar[Callable[..., Operation]]
    look = "primary"
    creates: ClassVar[bool] = False
    """Whether the operation may create servers, for which a user of Keystone delegates a trust."""
    is_final: ClassVar[bool] = False
    """Whether the operation deletes the record, so that its page is redirected to that of the plan."""

    def form(self, record: Any, data: Any = None) -> OperationForm:
        return self.form_class(record, data, may_start=self.may("plans.start_actionplan"))

    def perform(self, record: Any) -> str:
        form = self.submitted
        may_cancel = self.may("actions.signal_action")
        trust = trust_of(self.request, record.project_id, record) if self.creates else None
        options = RequestOptions(caller_of(self.request), form.cleaned_data["plan_only"], may_cancel, trust)
        self.operation = self.plan(record, form.inputs, options)
        if options.plan_only:
            return gettext("Plan created. Review it, skip the actions that must not run, then start it.")
        made = {"action": self.operation.action, "plan": self.operation.action_plan}
        return linked(_("Requested: action %(action)s of plan %(plan)s.") % made)

    def plan(self, record: Any, inputs: dict[str, Any], options: RequestOptions) -> Operation:
        return type(self).operate(record, **inputs, options=options)

    def redirect_url(self, record: Any, done: bool) -> str:
        if done and (self.is_final or self.submitted.cleaned_data["plan_only"]):
            return reverse("plans:detail", args=[self.operation.action_plan])
        return self.page_address_of(record)

    def page_address_of(self, record: Any) -> str:
        return record_page(record)


def record_page(record: Cluster | Node) -> str:
    name = "clusters:detail" if isinstance(record, Cluster) else "cluster:member"
    return reverse(name, args=[record.uuid])


class ClusterOperationView(OperationFormView):
    model = Cluster
    permission_required: Any = "cluster.operate_cluster"


class ScaleOut(ClusterOperationView):
    policy = "cluster:scale_out"
    creates = True
    verb, question = _("scale out the cluster"), _("Add nodes to the cluster?")
    form_class, operate = ScaleForm, scale_out


class ScaleIn(ClusterOperationView):
    policy = "cluster:scale_in"
    verb, question = _("scale in the cluster"), _("Remove nodes from the cluster?")
    consequence = _("The deletion policy chooses the nodes. Nodes in ERROR and tainted nodes are removed first.")
    form_class, operate, look = ScaleForm, scale_in, "danger"


class Resize(ClusterOperationView):
    policy = "cluster:resize"
    creates = True
    verb, question = _("resize the cluster"), _("Resize the cluster?")
    form_class, operate = ResizeForm, resize


class Check(ClusterOperationView):
    policy = "cluster:check"
    verb, question = _("check the cluster"), _("Check the cluster?")
    consequence = _("The server of each node is checked. Nodes whose server does not run are set to ERROR.")
    operate = check_cluster


class Recover(ClusterOperationView):
    policy = "cluster:recover"
    creates = True
    verb, question = _("recover the cluster"), _("Recover the cluster?")
    consequence = _("Nodes in ERROR are recovered, so that their servers run again.")
    form_class, operate = RecoverClusterForm, recover_cluster


class Change(ClusterOperationView):
    creates = True
    history_event = "cluster.update"
    permission_required = "cluster.change_cluster"
    verb, question = _("change the cluster"), _("Change the cluster?")
    form_class, operate = ChangeForm, update_cluster


class Delete(ClusterOperationView):
    permission_required = "cluster.delete_cluster"
    verb, question = _("delete the cluster"), _("Delete the cluster?")
    consequence = _("This cannot be undone.")
    form_class, operate, look, is_final = DeleteForm, delete_cluster, "danger", True


class Attach(ClusterOperationView):
    history_event = "cluster.attach_policy"
    permission_required = ("cluster.add_policybinding", "cluster.view_policy")
    verb, question = _("attach the policy"), _("Attach a policy to the cluster?")
    form_class, operate = AttachForm, attach_policy


class BindingOperationView(OperationFormView):
    """An operation on a policy of a cluster."""

    model = PolicyBinding

    def get_queryset(self) -> Any:
        return super().get_queryset().select_related("cluster", "policy")

    def page_address_of(self, record: PolicyBinding) -> str:
        return record_page(record.cluster)

    def plan(self, record: PolicyBinding, inputs: dict[str, Any], options: RequestOptions) -> Operation:
        return type(self).operate(
            record.cluster, record.policy, **inputs, **self.extra_inputs(record), options=options
        )

    def extra_inputs(self, record: PolicyBinding) -> dict[str, Any]:
        return {}


class Detach(BindingOperationView):
    history_event = "cluster.detach_policy"
    permission_required = "cluster.delete_policybinding"
    verb, question = _("detach the policy"), _("Detach the policy?")
    consequence = _("The policy no longer applies to the cluster.")
    operate, look = detach_policy, "danger"


class Enable(BindingOperationView):
    history_event = "cluster.update_policy"
    permission_required = "cluster.change_policybinding"
    verb, question = _("enable the policy"), _("Enable the policy?")
    operate = update_policy

    def extra_inputs(self, record: PolicyBinding) -> dict[str, Any]:
        return {"enabled": True}


class Disable(Enable):
    verb, question = _("disable the policy"), _("Disable the policy?")
    consequence = _("The policy stays attached, but is not applied.")

    def extra_inputs(self, record: PolicyBinding) -> dict[str, Any]:
        return {"enabled": False}


class NodeOperationView(OperationFormView):
    model = Node

    def page_address_of(self, record: Node) -> str:
        return record_page(record)


class CheckNode(NodeOperationView):
    permission_required = "cluster.check_node"
    verb, question = _("check the node"), _("Check the node?")
    consequence = _("The server of the node is checked. If it does not run, the node is set to ERROR.")
    operate = check_node


class RecoverNode(NodeOperationView):
    creates = True
    permission_required = "cluster.recover_node"
    verb, question = _("recover the node"), _("Recover the node?")
    consequence = _("If the server of the node does not run, it is recovered.")
    form_class, operate = RecoverForm, recover_node


class DeleteNode(NodeOperationView):
    permission_required = "cluster.delete_node"
    verb, question = _("delete the node"), _("Delete the node?")
    consequence = _("The server of the node is also deleted. This cannot be undone.")
    operate, look, is_final = delete_node, "danger", True
