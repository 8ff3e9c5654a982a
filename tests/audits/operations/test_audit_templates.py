"""How audit templates are made and changed."""

from typing import Any

import pytest

from audits.models import AuditTemplate
from audits.operations.audit_templates import change_audit_template, create_audit_template
from watcher_site.refusals import Conflict, Invalid, NotFound, Refused

pytestmark = pytest.mark.django_db


def make(**fields: Any) -> AuditTemplate:
    created = create_audit_template(**{"name": "nightly", "goal": "dummy", **fields})
    return AuditTemplate.objects.get(pk=created.pk)


def change(template: AuditTemplate, **changes: Any) -> AuditTemplate:
    change_audit_template(template, changes)
    return AuditTemplate.objects.get(pk=template.pk)


def test_default_parameters_are_kept_as_they_were_sent() -> None:
    assert make(strategy="dummy", default_parameters={"para1": 5}).default_parameters == {"para1": 5}


def test_a_template_without_scope_and_parameters_has_empty_ones() -> None:
    template = make()
    assert (template.scope, template.default_parameters) == ([], {})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"goal": "nope"},
            "Invalid input for field/attribute goal. Value: 'nope'. Goal nope is invalid",
        ),
        (
            {"strategy": "nope"},
            "Invalid input for field/attribute strategy. Value: 'nope'. Strategy nope is invalid",
        ),
        ({"default_parameters": {"para1": 5}}, "default_parameters requires a strategy to be specified"),
        (
            {"strategy": "dummy", "default_parameters": {"para1": 20}},
            "Invalid default_parameters for strategy: para1: 20 is greater than the maximum of 10.2",
        ),
        ({"strategy": "dummy", "default_parameters": {"bogus": 1}}, "Audit parameter bogus are not allowed"),
        ({"strategy": "dummy", "default_parameters": []}, "default_parameters: must be an object."),
        ({"name": ""}, "name: must not be empty."),
        ({"name": None}, "name: must be a text."),
        ({"name": "x" * 64}, "name: must not be longer than 63 characters."),
        ({"name": "a\0b"}, "name: must not hold NUL characters."),
        ({"description": "x" * 256}, "description: must not be longer than 255 characters."),
        ({"scope": "all"}, "scope: must be a list."),
        ({"goal": None}, "Cannot remove 'goal' attribute from an audit template"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        make(**fields)
    assert (str(refusal.value), AuditTemplate.objects.exists()) == (text, False)


def test_a_strategy_of_another_goal_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^'actuator' strategy does relate to the 'dummy' goal"):
        make(strategy="actuator")


def test_a_second_template_of_the_same_name_is_refused() -> None:
    make()
    with pytest.raises(Conflict, match=r"^An audit_template with UUID or name nightly already exists$"):
        make()


def test_a_template_may_be_changed_in_part() -> None:
    template = change(make(description="old"), description="new", scope=[{"compute": []}])
    assert (template.name, template.description, template.scope) == ("nightly", "new", [{"compute": []}])


def test_a_template_may_lose_its_strategy() -> None:
    assert change(make(strategy="dummy"), strategy=None).strategy is None


@pytest.mark.parametrize(
    ("changes", "refused", "text"),
    [
        ({"goal": None}, Invalid, "^Cannot remove 'goal' attribute from an audit template$"),
        ({"goal": "nope"}, Invalid, "Goal nope is invalid$"),
        ({"goal": "unclassified"}, Invalid, "^'dummy' strategy does relate to the 'unclassified' goal"),
        ({"name": "taken"}, Conflict, "^An audit_template with UUID or name taken already exists$"),
        ({"scope": [{"storage": []}]}, Invalid, "^scope: "),
        ({"uuid": "x"}, Invalid, "^uuid: is no attribute of an audit template that can be changed"),
    ],
)
def test_a_change_is_checked_like_a_new_template(changes: dict[str, Any], refused: type[Refused], text: str) -> None:
    make(name="taken")
    template = make(strategy="dummy")
    with pytest.raises(refused, match=text):
        change(template, **changes)


@pytest.mark.parametrize("changes", [{"goal": "dummy"}, {"strategy": "dummy"}])
def test_default_parameters_must_change_with_the_goal_or_the_strategy(changes: dict[str, Any]) -> None:
    template = make(strategy="dummy", default_parameters={"para1": 5})
    with pytest.raises(Conflict, match=r"^Updating goal or strategy on a template that has default_parameters"):
        change(template, **changes)


def test_default_parameters_may_change_with_the_strategy() -> None:
    template = make(strategy="dummy", default_parameters={"para1": 5})
    assert change(template, strategy=None, default_parameters=None).default_parameters == {}


def test_a_template_that_was_deleted_meanwhile_is_not_changed() -> None:
    template = make()
    AuditTemplate.objects.soft_delete()
    with pytest.raises(NotFound, match=f"AuditTemplate {template.uuid} could not be found"):
        change(template, name="new")
