"""How audits are made, with the checks and the texts that clients know."""

from typing import Any
from uuid import uuid4

import pytest

from audits.models import Audit, AuditTemplate, Strategy
from audits.operations.audit_templates import create_audit_template
from audits.operations.creation import create_audit
from watcher_site.refusals import Conflict, Invalid, NotFound, Refused

pytestmark = pytest.mark.django_db


def make(**fields: Any) -> Audit:
    created = create_audit(**{"audit_type": "ONESHOT", "goal": "dummy", **fields})
    return Audit.objects.get(pk=created.pk)


def from_template(template: AuditTemplate, **fields: Any) -> Audit:
    return make(goal=None, audit_template_uuid=str(template.uuid), **fields)


def template(**fields: Any) -> AuditTemplate:
    return create_audit_template(**{"name": "nightly", "goal": "dummy", "strategy": "dummy", **fields})


def test_an_audit_waits_for_a_decision_engine() -> None:
    audit = make(strategy="dummy", name="mine")
    assert (audit.name, audit.state, audit.goal.name) == ("mine", Audit.State.PENDING, "dummy")


def test_the_defaults_of_its_strategy_are_stored_with_an_audit() -> None:
    assert make(strategy="dummy").parameters == {"para1": 3.2, "para2": "hello"}


def test_an_audit_without_strategy_has_no_parameters() -> None:
    assert make().parameters == {}


def test_a_goal_and_a_strategy_may_be_named_by_uuid() -> None:
    strategy = Strategy.objects.present().get(name="dummy")
    audit = make(goal=str(strategy.goal.uuid), strategy=str(strategy.uuid))
    assert audit.strategy == strategy


@pytest.mark.parametrize(
    ("fields", "refused", "text"),
    [
        ({"audit_type": "oneshot"}, Invalid, "Audit type oneshot could not be found"),
        ({"goal": None}, Invalid, "A valid goal or audit_template_id must be provided"),
        (
            {"audit_template_uuid": str(uuid4())},
            Invalid,
            "Either audit_template_uuid or goal should be provided.",
        ),
        ({"interval": "60"}, Invalid, "Interval of audit must not be set for ONESHOT."),
        ({"audit_type": "CONTINUOUS"}, Invalid, "Interval of audit must be specified for CONTINUOUS."),
        ({"start_time": "2026-11-21"}, Invalid, "Start or End time of audit must not be set for ONESHOT."),
        ({"end_time": "2026-11-21"}, Invalid, "Start or End time of audit must not be set for ONESHOT."),
        ({"interval": 60}, Invalid, "interval: must be a text."),
        (
            {"goal": None, "audit_template_uuid": str(uuid4())},
            Invalid,
            "The audit template UUID or name specified is invalid",
        ),
        ({"goal": "nope"}, NotFound, "Goal nope could not be found"),
        ({"goal": "nope", "name": "mine"}, NotFound, "Goal nope could not be found"),
        ({"strategy": "nope"}, NotFound, "Strategy nope could not be found"),
        ({"goal": "a\0b"}, NotFound, "Goal ab could not be found"),
        ({"goal": "9" * 5000}, NotFound, f"Goal {'9' * 1994}…"),
        (
            {"parameters": {"para1": 2}},
            Invalid,
            "Specify parameters but no predefined strategy for audit, or no parameter spec in predefined strategy",
        ),
        (
            {"strategy": "dummy", "parameters": {"para1": 20}},
            Invalid,
            "Invalid parameters for strategy: para1: 20 is greater than the maximum of 10.2",
        ),
        ({"strategy": "dummy", "parameters": {"zz": 1}}, Invalid, "Audit parameter zz are not allowed"),
        ({"strategy": "dummy", "parameters": []}, Invalid, "parameters: must be an object."),
        ({"name": "a\0b"}, Invalid, "name: must not hold NUL characters."),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], refused: type[Refused], text: str) -> None:
    with pytest.raises(refused) as refusal:
        make(**fields)
    assert (str(refusal.value), Audit.objects.exists()) == (text, False)


def test_a_template_is_named_by_uuid() -> None:
    with pytest.raises(Invalid, match="Expected a uuid but received nightly"):
        make(goal=None, audit_template_uuid="nightly")


def test_a_strategy_of_another_goal_is_refused_with_the_goals_own() -> None:
    choices = Strategy.objects.present().filter(goal__name="dummy").order_by("name")
    with pytest.raises(Invalid) as refusal:
        make(strategy="host_maintenance")
    named = ", ".join(f"'{choice.uuid}' ({choice.name})" for choice in choices)
    assert len(choices) == 3
    assert str(refusal.value) == (
        f"'host_maintenance' strategy does relate to the 'dummy' goal. Possible choices: {named}"
    )


def test_a_second_audit_of_the_same_name_is_refused() -> None:
    make(name="mine")
    with pytest.raises(Conflict, match=r"^An audit with UUID or name Mine already exists$"):
        make(name="Mine")


def test_a_deleted_audit_leaves_its_name() -> None:
    Audit.objects.filter(pk=make(name="mine").pk).soft_delete()
    assert make(name="mine").name == "mine"


def test_an_emoji_is_a_name() -> None:
    assert make(name="🌩 nightly").name == "🌩 nightly"


def test_a_long_name_is_cut() -> None:
    assert make(name="x" * 100).name == "x" * 63


@pytest.mark.parametrize(
    ("fields", "origin"),
    [({"strategy": "dummy"}, "dummy"), ({"goal": "server_consolidation"}, "server_consolidation")],
)
def test_an_audit_without_name_is_named_after_its_origin_and_the_time(fields: dict[str, Any], origin: str) -> None:
    assert make(**fields).name.startswith(f"{origin}-20")


def test_an_audit_of_a_template_without_strategy_is_named_after_it() -> None:
    assert from_template(template(strategy=None)).name.startswith("nightly-20")


def test_a_default_name_keeps_its_time_when_it_is_cut() -> None:
    long = template(strategy=None, name="x" * 63)
    assert from_template(long).name != from_template(long).name


def test_goal_strategy_and_scope_come_from_the_template() -> None:
    scope = [{"compute": [{"exclude": [{"projects": [{"uuid": "blue"}]}]}]}]
    audit = from_template(template(scope=scope))
    assert (audit.goal.name, audit.strategy.name, audit.scope) == ("dummy", "dummy", scope)


def test_the_default_parameters_of_the_template_are_under_those_of_the_user() -> None:
    nightly = template(default_parameters={"para1": 5, "para2": "template"})
    assert from_template(nightly, parameters={"para2": "user"}).parameters == {"para1": 5, "para2": "user"}


@pytest.mark.parametrize("field", ["auto_trigger", "force"])
def test_wishes_are_kept(field: str) -> None:
    assert getattr(make(**{field: True}), field) is True
