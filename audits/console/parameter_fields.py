"""Convert the JSON Schema of a strategy's parameters to form fields, and their values back to parameters.

The fields are a convenience: what they hold is validated against the whole schema when the audit is made. A field of
an object inside is named after its path, ``parameter-periods.instance``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django import forms

from audits.console.choices import FORMATS
from audits.console.row_fields import RowsField

PREFIX = "parameter-"
Rule = Mapping[str, Any]
Options = dict[str, Any]
EMPTY: tuple[Any, ...] = (None, "", [])
IN_FULL = {
    "src_node": "from_node",
    "dst_node": "to_node",
    "src_pool": "from_pool",
    "dst_pool": "to_pool",
    "src_type": "from_type",
    "dst_type": "to_type",
}


def fields_for(schema: Rule, prefix: str = PREFIX, group: str = "") -> dict[str, forms.Field]:
    """Return the fields by their names, what must be filled in first."""
    required = schema.get("required", [])
    fields: dict[str, forms.Field] = {}
    for name, rule in sorted(schema.get("properties", {}).items(), key=lambda named: named[0] not in required):
        label = f"{group}: {words(name).lower()}" if group else str(rule.get("title") or words(name))
        if rule.get("type") == "object" and rule.get("properties"):
            inner = fields_for(rule, f"{prefix}{name}.", label)
            for field in inner.values():
                field.help_text = field.help_text or sentence(str(rule.get("description", "")))
            fields |= inner
        else:
            fields[f"{prefix}{name}"] = field_for(name, rule, name in required, label)
    return fields


def is_parameter(name: str) -> bool:
    return name.startswith(PREFIX)


def parameters_of(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the fields hold as the objects that the schema asks for, without what was left empty."""
    parameters: dict[str, Any] = {}
    for name, value in cleaned.items():
        if not is_parameter(name) or value in EMPTY:
            continue
        *path, last = name.removeprefix(PREFIX).split(".")
        inner = parameters
        for step in path:
            inner = inner.setdefault(step, {})
        inner[last] = value
    return parameters


def words(name: str) -> str:
    """Return the name of a parameter as people write: ``maintenance_node`` reads "Maintenance node"."""
    text = IN_FULL.get(name, name).replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def field_for(name: str, rule: Rule, required: bool, label: str) -> forms.Field:
    options = {
        "label": label,
        "help_text": sentence(str(rule.get("description", ""))),
        "initial": rule.get("default"),
        "required": required and "default" not in rule,
    }
    if "enum" in rule:
        return choice(rule, options)
    # A parameter of several types has a field for the first one.
    kind = rule["type"][0] if isinstance(rule.get("type"), list) else rule.get("type")
    if kind == "array":
        return as_list(rule, options)
    make = FIELDS.get(str(kind), as_json)
    return make(rule, options)


def sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith(".") else f"{text}."


def choice(rule: Rule, options: Options) -> forms.Field:
    values = {str(value): value for value in rule["enum"]}
    choices = [*([] if options["required"] else [("", "")]), *((text, text) for text in values)]
    return forms.TypedChoiceField(choices=choices, coerce=values.__getitem__, empty_value=None, **options)


def as_text(rule: Rule, options: Options) -> forms.Field:
    """Offer what the cloud has where the schema says what the text names, unless the cloud has none of it."""
    offered = FORMATS[rule["format"]]() if rule.get("format") in FORMATS else []
    if offered:
        return forms.ChoiceField(
            choices=[("", "Choose one" if options["required"] else "Not given"), *offered], **options
        )
    return forms.CharField(max_length=rule.get("maxLength"), min_length=rule.get("minLength"), **options)


def as_integer(rule: Rule, options: Options) -> forms.Field:
    return forms.IntegerField(min_value=rule.get("minimum"), max_value=rule.get("maximum"), **options)


def as_number(rule: Rule, options: Options) -> forms.Field:
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(min_value=rule.get("minimum"), max_value=rule.get("maximum"), widget=widget, **options)


def as_switch(rule: Rule, options: Options) -> forms.Field:
    return forms.BooleanField(**{**options, "required": False})


def as_list(rule: Rule, options: Options) -> forms.Field:
    items = rule.get("items", {})
    if "enum" in items:
        boxes = forms.CheckboxSelectMultiple
        return forms.MultipleChoiceField(choices=[(name, name) for name in items["enum"]], widget=boxes, **options)
    if items.get("type") == "string":
        return Lines(**options)
    columns = items.get("properties", {})
    if items.get("type") == "object" and columns and all(inner.get("type") in FIELDS for inner in columns.values()):
        required = items.get("required", [])
        fields = {name: field_for(name, inner, name in required, words(name)) for name, inner in columns.items()}
        return RowsField(fields, **options)
    return as_json(rule, options)


def as_json(rule: Rule, options: Options) -> forms.Field:
    options["help_text"] = f"{options['help_text']} As JSON.".strip()
    return forms.JSONField(widget=forms.Textarea(attrs={"rows": 3, "class": "uuid"}), **options)


class Lines(forms.CharField):
    """A list of texts, one a line."""

    def __init__(self, **options: Any) -> None:
        options["help_text"] = f"{options['help_text']} One a line; the first counts most.".strip()
        super().__init__(widget=forms.Textarea(attrs={"rows": 2}), **options)

    def prepare_value(self, value: str | Iterable[str] | None) -> str | None:
        return value if value is None or isinstance(value, str) else "\n".join(map(str, value))

    def clean(self, value: Any) -> list[str]:
        return [line.strip() for line in super().clean(value).splitlines() if line.strip()]


FIELDS: dict[str, Callable[[Rule, Options], forms.Field]] = {
    "string": as_text,
    "integer": as_integer,
    "number": as_number,
    "boolean": as_switch,
}
