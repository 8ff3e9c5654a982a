from typing import Any

from django.db import migrations, models
from django.db.models import F, Min, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from watcher_site.database.migration_operations import AddIndexOnline, RunInBatches
from watcher_site.database.records import NullsFirst

FINAL = ("SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED")


def write_times(plans: QuerySet[Any]) -> None:
    """Write the times of plans that began and ended before these columns existed.

    A plan began with the first phase of its actions, and the row of an ended plan did not change any more.
    """
    events = plans.model._meta.apps.get_model("actions", "ActionEvent")._base_manager
    phases = events.filter(action__action_plan=OuterRef("pk"), event="pre_condition").order_by()
    first = phases.values("action__action_plan").annotate(first=Min("start_time")).values("first")
    present = plans.filter(deleted_at=None)
    present.filter(start_time=None).update(start_time=Subquery(first))
    present.filter(end_time=None, state__in=FINAL).update(end_time=Coalesce(F("updated_at"), F("created_at")))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("actions", "0018_column_defaults"),
        ("plans", "0010_times"),
    ]

    operations = [
        RunInBatches("actionplan", write_times),
        AddIndexOnline("actionplan", models.Index(NullsFirst("start_time"), "id", name="action_plan_start_time")),
        AddIndexOnline("actionplan", models.Index(NullsFirst("end_time"), "id", name="action_plan_end_time")),
    ]
