"""The builder of clusters writes the same rows as CLUSTER_CREATE."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import Model

from cluster.models import Cluster, Node, Server
from tests.actions.types.clusters.builders import create_cluster, run
from tests.builders import make_cluster, make_flavor, make_node, make_profile

pytestmark = pytest.mark.django_db
# Identifiers and times, and the names that contain identifiers.
OWN = {"id", "uuid", "created_at", "init_at", "launched_at", "token", "physical_id", "cluster_id", "name"}


def rows(*models: type[Model]) -> Iterator[dict[str, Any]]:
    """Yield the columns of the rows, and for values that differ in each row only whether they are set."""
    for model in models:
        for row in model._default_manager.order_by("pk").values():
            own = {column: row[column] is not None for column in OWN & row.keys()}
            assert model is Cluster or row["name"].startswith("web-")
            del row["updated_at"]
            yield {**row, **own, "model": model.__name__}


def test_built_cluster_has_the_rows_of_a_created_cluster() -> None:
    make_node(vcpus=8)
    make_flavor("small")
    make_profile("web")
    models = (Cluster, Node, Server)
    create_cluster(2, "web", min_size=1)
    made = list(rows(*models))
    assert Node.objects.filter(physical_id__in=Server.objects.values("uuid")).count() == 2
    for model in reversed(models):
        model.objects.all().delete()
    cluster = make_cluster("web", status="INIT", desired_capacity=2, min_size=1, next_index=1)
    assert run("CLUSTER_CREATE", cluster).state == "SUCCEEDED"
    assert made == list(rows(*models))
