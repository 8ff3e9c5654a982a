"""``/v1/clusters/{id}/policies``: list, attach, change and detach the policies of a cluster."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.api.profiles import CLUSTERS
from cluster.models import Cluster, Policy, PolicyBinding
from cluster.operations.named_records import find_unique
from plans.api.clusters.bodies import AttachmentSerializer, ClusterOperationSerializer
from plans.api.operations import PLAN_ONLY_PARAMETER, Operating, changes_of, columns_of
from plans.operations.cluster_policies import attach_policy, detach_policy, update_policy
from watcher_site.api.bodies import read_body, read_patch
from watcher_site.api.paging import read_flag, refuse_unknown_arguments
from watcher_site.api.serializers import ResourceSerializer, Row
from watcher_site.api.views import ResourceView
from watcher_site.refusals import NotFound

CHANGEABLE = ("enabled", "priority")


class BindingSerializer(ResourceSerializer):
    """The binding of a policy to a cluster."""

    uuid = serializers.UUIDField()
    cluster_uuid = serializers.UUIDField()
    cluster_name = serializers.CharField()
    policy_uuid = serializers.UUIDField()
    policy_name = serializers.CharField()
    policy_type = serializers.CharField()
    priority = serializers.IntegerField(help_text="policies with smaller values are checked first")
    enabled = serializers.BooleanField()
    last_op = serializers.DateTimeField(allow_null=True, help_text="time of the last operation that the policy limits")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "cluster_policies"
        columns = {
            "cluster_uuid": "cluster__uuid",
            "cluster_name": "cluster__name",
            "policy_uuid": "policy__uuid",
            "policy_name": "policy__name",
            "policy_type": "policy__type",
        }

    @classmethod
    def add_links(cls, rows: list[Row], host: str) -> None:
        """Add no links: a binding has no address, but is identified by the cluster and the policy."""


class BindingsSerializer(serializers.Serializer[Any]):
    cluster_policies = BindingSerializer(many=True)


class BindingView(Operating, ResourceView):
    """The policies of a cluster. Cluster and policy are identified by UUID or name."""

    since = CLUSTERS
    serializer_class = BindingSerializer
    model = PolicyBinding
    title = "Policy"
    policy = "cluster_policy"
    policy_actions = ResourceView.policy_actions | {"of_cluster": "get_all"}
    identifiers = ("uuid", "name")
    operates_on = "cluster"
    bodies = {"create": AttachmentSerializer}
    arguments = {"partial_update": [PLAN_ONLY_PARAMETER], "destroy": [PLAN_ONLY_PARAMETER]}
    answers = {
        "of_cluster": (200, BindingsSerializer),
        **dict.fromkeys(("create", "partial_update", "destroy"), (202, ClusterOperationSerializer)),
    }
    history_events = {
        "create": "cluster.attach_policy",
        "partial_update": "cluster.update_policy",
        "destroy": "cluster.detach_policy",
    }
    example_step = {"op": "replace", "path": "/enabled", "value": False}

    def of_cluster(self, request: Request, identifier: str) -> Response:
        """List the policies of a cluster in the order in which they are checked."""
        cluster = self.find_cluster(request, identifier)
        refuse_unknown_arguments(request.query_params, ())
        bindings = PolicyBinding.objects.present().filter(cluster=cluster).order_by("priority", "pk")
        return Response({BindingSerializer.Meta.collection: self.read(bindings, detailed=True)})

    def retrieve(self, request: Request, identifier: str, policy: str = "") -> Response:
        """Show the binding of a policy to a cluster."""
        return Response(self.show(self.find_binding(request, identifier, policy)))

    def create(self, request: Request, identifier: str) -> Response:
        """Attach a policy to a cluster by an action."""
        cluster = self.find_cluster(request, identifier)
        attributes = read_body(request, AttachmentSerializer, BindingSerializer._declared_fields)
        options = self.request_options(request, attributes.pop("plan_only"))
        return self.accepted(attach_policy(cluster, **attributes, options=options))

    def partial_update(self, request: Request, identifier: str, policy: str) -> Response:
        """Change the priority of a policy of a cluster, or enable or disable it, by an action."""
        paths = [f"/{name}" for name in CHANGEABLE]
        patch = read_patch(request.data, allowed=paths, mandatory=paths)
        binding = self.find_binding(request, identifier, policy)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        changes = changes_of(columns_of(binding, CHANGEABLE), patch)
        options = self.request_options(request, read_flag(request, "plan_only"))
        return self.accepted(update_policy(binding.cluster, binding.policy, **changes, options=options))

    def destroy(self, request: Request, identifier: str, policy: str) -> Response:
        """Detach a policy from a cluster by an action."""
        binding = self.find_binding(request, identifier, policy)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        options = self.request_options(request, read_flag(request, "plan_only"))
        return self.accepted(detach_policy(binding.cluster, binding.policy, options=options))

    def find_cluster(self, request: Request, identifier: str) -> Cluster:
        """Return the cluster of the path if the user has the permission on its policies.

        Raises:
            NotFound: the cluster does not exist. As in all views, this is checked before permissions.
        """
        found: Cluster | None = find_unique(Cluster.objects.present().named(identifier), identifier).first()
        if found is None:
            raise NotFound(f"Cluster {identifier} could not be found")
        self.check_object_permissions(request, found)
        return found

    def find_binding(self, request: Request, identifier: str, policy: str) -> PolicyBinding:
        cluster = self.find_cluster(request, identifier)
        bindings = PolicyBinding.objects.present().select_related("cluster", "policy")
        policies = Policy.objects.present().named(policy)
        found: PolicyBinding | None = bindings.filter(cluster=cluster, policy__in=policies).first()
        if found is None:
            raise NotFound(f"Policy {policy} is not attached to cluster {cluster.uuid}")
        return found
