"""Concurrent operations on clusters."""

import pytest

from actions.models import Action
from cluster.models import Cluster, Profile
from cluster.operations.profiles import delete_profile
from plans.operations.cluster_policies import attach_policy
from plans.operations.clusters import create_cluster, scale_out
from plans.operations.nodes import check_node
from tests.builders import make_cluster, make_policy, make_profile
from tests.plans.operations.test_node_operations import race

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_of_several_concurrent_operations_on_a_cluster_is_planned() -> None:
    for number in range(5):
        cluster = make_cluster(str(number))
        assert race(*[lambda cluster=cluster: scale_out(cluster)] * 4) == 1
    assert Action.objects.count() == 5


def test_one_of_two_concurrent_operations_on_a_cluster_and_a_member_is_planned() -> None:
    for number in range(10):
        cluster = make_cluster(str(number), size=1)
        node = cluster.members().get()
        assert race(lambda cluster=cluster: scale_out(cluster), lambda node=node: check_node(node)) == 1
    assert Action.objects.count() == 10


def test_one_of_several_concurrent_attachments_of_a_policy_is_planned() -> None:
    policy = make_policy("grow", "senlin.policy.scaling-1.0", spec={"event": "CLUSTER_SCALE_OUT"})
    for number in range(5):
        cluster = make_cluster(str(number))
        assert race(*[lambda cluster=cluster: attach_policy(cluster, policy.name)] * 3) == 1
    assert Action.objects.count() == 5


def test_deletion_of_a_profile_and_creation_of_a_cluster_from_it_exclude_each_other() -> None:
    for number in range(10):
        profile = make_profile(f"profile {number}")
        race(
            lambda profile=profile: delete_profile(profile),
            lambda profile=profile: create_cluster("web", profile.name),
        )
    assert (
        not Profile.objects.filter(deleted_at__isnull=False, clusters__deleted_at=None).exclude(clusters=None).exists()
    )
    assert Cluster.objects.count() == Profile.objects.present().count()
