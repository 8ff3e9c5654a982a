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
    """Synchronize the rows with the plug-ins, unless the migration ended at an earlier version of the tables."""
    from audits.plugins import SYNCHRONIZED, synchronize

    if all(has_current_columns(model, apps) for model in SYNCHRONIZED):
        synchronize()


def has_current_columns(model: Any, apps: Any) -> bool:
    """Return whether the migrated table of a model has all columns of the current model."""
    try:
        migrated = apps.get_model(model._meta.label)
    except LookupError:
        return False
    return {field.name for field in model._meta.concrete_fields} <= {
        field.name for field in migrated._meta.concrete_fields
    }
