"""Goals: validation of efficacy indicators, and the global efficacy."""

import pytest

from audits.goals import GOALS, GoalDefinition
from watcher_site.refusals import Invalid

CONSOLIDATION = GOALS["server_consolidation"]
REPORT = {"compute_nodes_count": 4, "released_compute_nodes_count": 1, "instance_migrations_count": 7}


def test_global_efficacy_is_a_percentage() -> None:
    [ratio] = CONSOLIDATION.global_efficacy(REPORT)
    assert (ratio["name"], ratio["unit"], ratio["value"]) == ("released_nodes_ratio", "%", 25)


def test_global_efficacy_without_nodes_is_zero() -> None:
    [ratio] = CONSOLIDATION.global_efficacy({**REPORT, "compute_nodes_count": 0})
    assert ratio["value"] == 0


def test_ratios_of_hardware_maintenance_have_the_names_of_the_reference() -> None:
    assert [ratio.name for ratio in GOALS["hardware_maintenance"].ratios] == [
        "live_instance_migrate_ratio",
        "cold_instance_migrate_ratio",
        "volume_migrate_ratio",
        "volume_update_ratio",
    ]


def test_complete_indicators_are_accepted() -> None:
    CONSOLIDATION.check(REPORT)


def test_missing_required_indicator_is_refused() -> None:
    with pytest.raises(Invalid, match="instance_migrations_count: the strategy did not report it"):
        CONSOLIDATION.check({name: value for name, value in REPORT.items() if name != "instance_migrations_count"})


def test_indicator_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(Invalid, match=r"compute_nodes_count: 1.5 is not of type 'integer'"):
        CONSOLIDATION.check({**REPORT, "compute_nodes_count": 1.5})


def test_unknown_indicator_is_refused() -> None:
    with pytest.raises(Invalid, match="luck: goal 'server_consolidation' knows none"):
        CONSOLIDATION.check({**REPORT, "luck": 1})


def test_missing_optional_indicator_is_accepted() -> None:
    GOALS["workload_balancing"].check({"instance_migrations_count": 0, "standard_deviation_after_audit": 0.5})


def test_goal_without_indicators_has_no_global_efficacy() -> None:
    assert GoalDefinition("calm", "Calm").global_efficacy({}) == []
