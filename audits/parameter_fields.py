"""From the JSON Schema of one parameter to the form field that asks for it.

The fields are a convenience: what they hold is validated against the whole schema when the audit is made.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms

PREFIX = "parameter-"


def field_for(name: str, rule: Mapping[str, Any], required: bool) -> forms.Field:
    options = {
        "label": name,
        "help_text": rule.get("description", ""),
        "initial": rule.get("default"),
        "required": required and "default" not in rule,
    }
    if "enum" in rule:
        return choice(rule, options)
    make = FIELDS.get(str(rule.get("type")), as_json)
    return make(rule, options)


def choice(rule: Mapping[str, Any], options: dict[str, Any]) -> forms.Field:
    values = {str(value): value for value in rule["enum"]}
    choices = [*([] if options["required"] else [("", "")]), *((text, text) for text in values)]
    return forms.TypedChoiceField(choices=choices, coerce=values.__getitem__, empty_value=None, **options)


def as_text(rule: Mapping[str, Any], options: dict[str, Any]) -> forms.Field:
    return forms.CharField(max_length=rule.get("maxLength"), min_length=rule.get("minLength"), **options)


def as_integer(rule: Mapping[str, Any], options: dict[str, Any]) -> forms.Field:
    return forms.IntegerField(min_value=rule.get("minimum"), max_value=rule.get("maximum"), **options)


def as_number(rule: Mapping[str, Any], options: dict[str, Any]) -> forms.Field:
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(min_value=rule.get("minimum"), max_value=rule.get("maximum"), widget=widget, **options)


def as_switch(rule: Mapping[str, Any], options: dict[str, Any]) -> forms.Field:
    return forms.BooleanField(**{**options, "required": False})


def as_json(rule: Mapping[str, Any], options: dict[str, Any]) -> forms.Field:
    options["help_text"] = f"{options['help_text']} As JSON.".strip()
    return forms.JSONField(widget=forms.Textarea(attrs={"rows": 3, "class": "uuid"}), **options)


FIELDS: dict[str, Callable[[Mapping[str, Any], dict[str, Any]], forms.Field]] = {
    "string": as_text,
    "integer": as_integer,
    "number": as_number,
    "boolean": as_switch,
}
