"""Creation of audits: checks, their error texts, default values and names."""

from typing import Any
from uuid import uuid4

import pytest

from audits.models import Audit, AuditTemplate, Strategy
from audits.operations.audit_templates import create_audit_template
from audits.operations.creation import create_audit
from watcher_site.refusals import Conflict, Invalid, NotFound, Refused

pytestmark = pytest.mark.django_db


def create(**fields: Any) -> Audit:
    created = create_audit(**{"audit_type": "ONESHOT", "goal": "dummy", **fields})
    return Audit.objects.get(pk=created.pk)


def from_template(template: AuditTemplate, **fields: Any) -> Audit:
    return create(goal=None, audit_template_uuid=str(template.uuid), **fields)


def template(**fields: Any) -> AuditTemplate:
    return create_audit_template(**{"name": "nightly", "goal": "dummy", "strategy": "dummy", **fields})


def test_created_audit_is_pending() -> None:
    audit = create(strategy="dummy", name="mine")
    assert (audit.name, audit.state, audit.goal.name) == ("mine", Audit.State.PENDING, "dummy")


def test_defaults_of_the_strategy_are_stored_in_the_parameters() -> None:
    assert create(strategy="dummy").parameters == {"para1": 3.2, "para2": "hello"}


def test_audit_without_strategy_has_no_parameters() -> None:
    assert create().parameters == {}


def test_goal_and_strategy_are_found_by_uuid() -> None:
    strategy = Strategy.objects.present().get(name="dummy")
    audit = create(goal=str(strategy.goal.uuid), strategy=str(strategy.uuid))
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
        ({"name": "a\0b"}, Invalid, "name: must not contain NUL characters."),
    ],
)
def test_invalid_field_is_refused_and_creates_no_audit(
    fields: dict[str, Any], refused: type[Refused], text: str
) -> None:
    with pytest.raises(refused) as refusal:
        create(**fields)
    assert (str(refusal.value), Audit.objects.exists()) == (text, False)


def test_name_of_a_template_at_the_place_of_its_uuid_is_refused() -> None:
    with pytest.raises(Invalid, match="Expected a uuid but received nightly"):
        create(goal=None, audit_template_uuid="nightly")


def test_error_of_a_strategy_of_another_goal_lists_the_strategies_of_the_goal() -> None:
    choices = Strategy.objects.present().filter(goal__name="dummy").order_by("name")
    with pytest.raises(Invalid) as refusal:
        create(strategy="host_maintenance")
    named = ", ".join(f"'{choice.uuid}' ({choice.name})" for choice in choices)
    assert len(choices) == 3
    assert str(refusal.value) == (
        f"'host_maintenance' strategy does relate to the 'dummy' goal. Possible choices: {named}"
    )


def test_duplicate_name_in_another_case_is_refused() -> None:
    create(name="mine")
    with pytest.raises(Conflict, match=r"^An audit with UUID or name Mine already exists$"):
        create(name="Mine")


def test_name_of_a_deleted_audit_is_free() -> None:
    Audit.objects.filter(pk=create(name="mine").pk).soft_delete()
    assert create(name="mine").name == "mine"


def test_emoji_in_a_name_is_accepted() -> None:
    assert create(name="🌩 nightly").name == "🌩 nightly"


def test_long_name_is_truncated() -> None:
    assert create(name="x" * 100).name == "x" * 63


@pytest.mark.parametrize(
    ("fields", "origin"),
    [({"strategy": "dummy"}, "dummy"), ({"goal": "server_consolidation"}, "server_consolidation")],
)
def test_default_name_is_the_strategy_or_goal_and_the_time(fields: dict[str, Any], origin: str) -> None:
    assert create(**fields).name.startswith(f"{origin}-20")


def test_default_name_from_a_template_without_strategy_is_the_template_and_the_time() -> None:
    assert from_template(template(strategy=None)).name.startswith("nightly-20")


def test_truncated_default_name_keeps_the_time() -> None:
    long = template(strategy=None, name="x" * 63)
    assert from_template(long).name != from_template(long).name


def test_goal_strategy_and_scope_are_copied_from_the_template() -> None:
    scope = [{"compute": [{"exclude": [{"projects": [{"uuid": "blue"}]}]}]}]
    audit = from_template(template(scope=scope))
    assert (audit.goal.name, audit.strategy.name, audit.scope) == ("dummy", "dummy", scope)


def test_given_parameters_override_the_default_parameters_of_the_template() -> None:
    nightly = template(default_parameters={"para1": 5, "para2": "template"})
    assert from_template(nightly, parameters={"para2": "user"}).parameters == {"para1": 5, "para2": "user"}


@pytest.mark.parametrize("field", ["auto_trigger", "force"])
def test_auto_trigger_and_force_are_stored(field: str) -> None:
    assert getattr(create(**{field: True}), field) is True
