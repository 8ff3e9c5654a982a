"""Creation and change of audit templates."""

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


def test_default_parameters_are_stored_without_the_defaults_of_the_strategy() -> None:
    assert make(strategy="dummy", default_parameters={"para1": 5}).default_parameters == {"para1": 5}


def test_scope_and_default_parameters_are_empty_by_default() -> None:
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
        ({"name": "a\0b"}, "name: must not contain NUL characters."),
        ({"description": "x" * 256}, "description: must not be longer than 255 characters."),
        ({"scope": "all"}, "scope: must be a list."),
        ({"goal": None}, "Cannot remove 'goal' attribute from an audit template"),
    ],
)
def test_invalid_field_is_refused_and_creates_no_template(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        make(**fields)
    assert (str(refusal.value), AuditTemplate.objects.exists()) == (text, False)


def test_strategy_of_another_goal_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^'actuator' strategy does relate to the 'dummy' goal"):
        make(strategy="actuator")


def test_duplicate_name_is_refused() -> None:
    make()
    with pytest.raises(Conflict, match=r"^An audit_template with UUID or name nightly already exists$"):
        make()


def test_change_updates_the_given_fields_only() -> None:
    template = change(make(description="old"), description="new", scope=[{"compute": []}])
    assert (template.name, template.description, template.scope) == ("nightly", "new", [{"compute": []}])


def test_strategy_of_a_template_is_removed() -> None:
    assert change(make(strategy="dummy"), strategy=None).strategy is None


@pytest.mark.parametrize(
    ("changes", "refused", "text"),
    [
        ({"goal": None}, Invalid, "^Cannot remove 'goal' attribute from an audit template$"),
        ({"goal": "nope"}, Invalid, "Goal nope is invalid$"),
        ({"goal": "unclassified"}, Invalid, "^'dummy' strategy does relate to the 'unclassified' goal"),
        ({"name": "taken"}, Conflict, "^An audit_template with UUID or name taken already exists$"),
        ({"scope": [{"storage": []}]}, Invalid, "^scope: "),
        ({"uuid": "x"}, Invalid, "^uuid: is not an attribute of an audit template that can be changed"),
    ],
)
def test_invalid_change_is_refused(changes: dict[str, Any], refused: type[Refused], text: str) -> None:
    make(name="taken")
    template = make(strategy="dummy")
    with pytest.raises(refused, match=text):
        change(template, **changes)


@pytest.mark.parametrize("changes", [{"goal": "dummy"}, {"strategy": "dummy"}])
def test_change_of_goal_or_strategy_without_default_parameters_is_refused(changes: dict[str, Any]) -> None:
    template = make(strategy="dummy", default_parameters={"para1": 5})
    with pytest.raises(Conflict, match=r"^Updating goal or strategy on a template that has default_parameters"):
        change(template, **changes)


def test_strategy_and_default_parameters_are_changed_together() -> None:
    template = make(strategy="dummy", default_parameters={"para1": 5})
    assert change(template, strategy=None, default_parameters=None).default_parameters == {}


def test_change_of_a_deleted_template_is_refused() -> None:
    template = make()
    AuditTemplate.objects.soft_delete()
    with pytest.raises(NotFound, match=f"AuditTemplate {template.uuid} could not be found"):
        change(template, name="new")
