from typing import Any

from django.apps import apps as installed
from django.db.models.signals import post_migrate

from watcher_site.apps import SiteApp


class AuditsConfig(SiteApp):
    default = True
    name = "audits"
    contracts = {
        "STRATEGIES": "audits.strategies.base.Strategy",
        "SCORING_ENGINES": "audits.scoring.base.ScoringEngine",
    }

    def ready(self) -> None:
        from audits import checks  # noqa: F401 (registers them)
        from audits.engine.capacity import on_server_pending
        from cluster.notifications import server_pending

        server_pending.connect(on_server_pending, dispatch_uid="audits.engine.capacity")
        post_migrate.connect(synchronize_after_migrate, sender=self)


def synchronize_after_migrate(apps: Any = installed, **_: Any) -> None:
    """Bring the rows in line with the plug-ins, unless the migration stopped short of the tables as they are now."""
    from audits.plugins import SYNCHRONIZED, synchronize

    if all(has_current_columns(model, apps) for model in SYNCHRONIZED):
        synchronize()


def has_current_columns(model: Any, apps: Any) -> bool:
    """Return whether the table of a model had all its present columns when the migrations ended."""
    try:
        migrated = apps.get_model(model._meta.label)
    except LookupError:
        return False
    return {field.name for field in model._meta.concrete_fields} <= {
        field.name for field in migrated._meta.concrete_fields
    }
