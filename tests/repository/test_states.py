"""A state changes by a transition of its model, or by a queryset method that follows the transitions."""

import re
from pathlib import Path

from actions.models import Action
from audits.models import Audit
from plans.models import ActionPlan

ROOT = Path(__file__).parents[2]
APPS = ("watcher_site", "cluster", "actions", "plans", "audits")


def test_state_is_updated_only_in_models_and_querysets() -> None:
    writers = [
        str(path.relative_to(ROOT))
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if path.name != "querysets.py" and re.search(r"\.update\(\s*state=", path.read_text())
    ]
    assert writers == []


def test_objects_with_a_state_are_read_again_instead_of_refreshed() -> None:
    """`refresh_from_db` turns off the protection of the state in all threads, permanently if the row is missing."""
    callers = [
        str(path.relative_to(ROOT))
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if "refresh_from_db" in path.read_text()
    ]
    assert callers == []


def test_sources_of_bulk_transitions_match_their_state_machines() -> None:
    assert Action.sources("cancel") == {"PENDING"}
    assert ActionPlan.sources("cancel") == {"RECOMMENDED", "PENDING"}
    assert ActionPlan.sources("supersede") == {"RECOMMENDED"}
    assert {"PENDING", "ONGOING"} <= Audit.sources("cancel")
