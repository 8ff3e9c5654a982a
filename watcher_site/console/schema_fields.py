"""Form fields for the JSON Schema of parameters or properties, and the objects that their values form.

The values are validated against the whole schema when they are used. A field of a nested object is named after its
path, as in ``parameter-periods.instance``.
"""

from collections.abc import Callable, Iterable, Mapping
from json import JSONDecodeError, loads
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from watcher_site.messages import Text

Choices = list[tuple[str, Text]]
Formats = Mapping[str, Callable[[], Choices]]
"""The choices of texts, by the ``format`` in the schema."""
Row = dict[str, Any]
MOST_ROWS = 1000
PREFIX = "parameter-"
Rule = Mapping[str, Any]
Options = dict[str, Any]
EMPTY: tuple[Any, ...] = (None, "", [])
NO_FORMATS: Formats = {}
IN_FULL = {
    "src_node": "from_node",
    "dst_node": "to_node",
    "src_pool": "from_pool",
    "dst_pool": "to_pool",
    "src_type": "from_type",
    "dst_type": "to_type",
}


def fields_for(
    schema: Rule, prefix: str = PREFIX, group: str = "", formats: Formats = NO_FORMATS
) -> dict[str, forms.Field]:
    """Return the form fields by name, required fields first."""
    required = schema.get("required", [])
    fields: dict[str, forms.Field] = {}
    for name, rule in sorted(schema.get("properties", {}).items(), key=lambda named: named[0] not in required):
        label = (
            f"{group}: {humanize_parameter(name).lower()}"
            if group
            else str(rule.get("title") or humanize_parameter(name))
        )
        if rule.get("type") == "object" and rule.get("properties"):
            inner = fields_for(rule, f"{prefix}{name}.", label, formats)
            for field in inner.values():
                field.help_text = field.help_text or describe_property(rule)
            fields |= inner
        else:
            fields[f"{prefix}{name}"] = make_field(name, rule, name in required, label, formats)
    return fields


def is_parameter(name: str) -> bool:
    return name.startswith(PREFIX)


def parameters_of(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the fields as nested objects of the schema, without empty values."""
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


def find_refused(refusal: str, names: Iterable[str]) -> tuple[str | None, str]:
    """Return the field of the path at the start of a refusal, if there is one, and the rest of the refusal."""
    path, _separator, text = refusal.partition(": ")
    known = set(names)
    steps = path.split(".")
    for length in range(len(steps), 0, -1):
        name = f"{PREFIX}{'.'.join(steps[:length])}"
        if name in known:
            rest = ".".join(steps[length:])
            return name, f"{rest}: {text}" if rest else text
    return None, refusal


def humanize_parameter(name: str) -> str:
    """Return the label of a parameter: "Maintenance node" for ``maintenance_node``."""
    text = IN_FULL.get(name, name).replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def make_field(name: str, rule: Rule, required: bool, label: str, formats: Formats = NO_FORMATS) -> forms.Field:
    options: Options = {
        "label": label,
        "help_text": describe_property(rule),
        "initial": rule.get("default"),
        "required": required and "default" not in rule,
    }
    if "enum" in rule:
        return make_choice_field(rule, options)
    # A parameter of several types has a field for the first one.
    kind = rule["type"][0] if isinstance(rule.get("type"), list) else rule.get("type")
    if kind == "array":
        return make_list_field(rule, options, formats)
    if offered := formats[rule["format"]]() if rule.get("format") in formats else []:
        empty = ("", _("Choose one") if options["required"] else _("Not set"))
        return forms.ChoiceField(choices=[empty, *offered], **options)
    make = FIELDS.get(str(kind), make_json_field)
    return make(rule, options)


def describe_property(rule: Rule) -> str:
    """Return the description of a parameter in the language of the user, as a sentence."""
    text = str(rule.get("description", ""))
    if not text:
        return ""
    text = gettext(text)
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."


def make_choice_field(rule: Rule, options: Options) -> forms.Field:
    values = {str(value): value for value in rule["enum"]}
    choices = [*([] if options["required"] else [("", "")]), *((text, text) for text in values)]
    return forms.TypedChoiceField(choices=choices, coerce=values.__getitem__, empty_value=None, **options)


def make_text_field(rule: Rule, options: Options) -> forms.Field:
    return forms.CharField(max_length=rule.get("maxLength"), min_length=rule.get("minLength"), **options)


def make_integer_field(rule: Rule, options: Options) -> forms.Field:
    return forms.IntegerField(min_value=rule.get("minimum"), max_value=rule.get("maximum"), **options)


def make_number_field(rule: Rule, options: Options) -> forms.Field:
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(min_value=rule.get("minimum"), max_value=rule.get("maximum"), widget=widget, **options)


def make_boolean_field(rule: Rule, options: Options) -> forms.Field:
    return forms.BooleanField(**{**options, "required": False})


def make_list_field(rule: Rule, options: Options, formats: Formats) -> forms.Field:
    items = rule.get("items", {})
    if "enum" in items:
        boxes = forms.CheckboxSelectMultiple
        return forms.MultipleChoiceField(choices=[(name, name) for name in items["enum"]], widget=boxes, **options)
    if items.get("type") == "string":
        return LinesField(**options)
    columns = items.get("properties", {})
    if items.get("type") == "object" and columns and all(inner.get("type") in FIELDS for inner in columns.values()):
        required = items.get("required", [])
        fields = {
            name: make_field(name, inner, name in required, humanize_parameter(name), formats)
            for name, inner in columns.items()
        }
        return RowsField(fields, **options)
    return make_json_field(rule, options)


def make_json_field(rule: Rule, options: Options) -> forms.Field:
    options["help_text"] = f"{options['help_text']} {_('As JSON.')}".strip()
    return DocumentField(widget=forms.Textarea(attrs={"rows": 3, "class": "uuid"}), **options)


class DocumentField(forms.JSONField):
    """A field for JSON, whose error message contains the line of the error."""

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and not self.disabled and value not in self.empty_values:
            try:
                loads(value)
            except JSONDecodeError as problem:
                place = {"line": problem.lineno, "column": problem.colno, "problem": problem.msg}
                raise ValidationError(
                    _("Enter valid JSON. Line %(line)d, column %(column)d: %(problem)s.") % place, code="invalid"
                ) from problem
        return super().to_python(value)


class RowsWidget(forms.Widget):
    """A table of cells named ``field.row.column``.

    Input in the last row requests another one from the server, with the attributes in ``redraw``. Otherwise ``spare``
    is the number of empty rows.
    """

    use_fieldset = True
    redraw: Mapping[str, str] = {}
    spare = 1

    def __init__(self, columns: Mapping[str, forms.Field]) -> None:
        super().__init__()
        self.columns = columns

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> Any:
        rows = [*(row for row in value or [] if isinstance(row, dict)), *[Row()] * self.spare]
        heads = [field.label for field in self.columns.values()]
        cells = [
            zip(heads, self.draw_row(name, number, row, number == len(rows) - 1), strict=True)
            for number, row in enumerate(rows)
        ]
        return render_to_string("_row_fields.html", {"heads": heads, "rows": cells})

    def draw_row(self, name: str, number: int, row: Row, is_last: bool) -> list[Any]:
        drawn = []
        for column, field in self.columns.items():
            cell = f"{name}.{number}.{column}"
            look = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            attributes = {
                "id": f"id_{cell}",
                "class": look,
                "aria-label": _("%(field)s, row %(number)d") % {"field": field.label, "number": number + 1},
            }
            if is_last:
                attributes |= self.redraw
            drawn.append(field.widget.render(cell, row.get(column, ""), attributes))
        return drawn

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[Row]:
        rows = []
        for number in range(MOST_ROWS):
            cells = {column: data.get(f"{name}.{number}.{column}") for column in self.columns}
            if all(value is None for value in cells.values()):
                break
            rows.append({column: value for column, value in cells.items() if value})
        return [row for row in rows if row]

    def id_for_label(self, id_: str, index: Any = None) -> str:
        return ""


class RowsField(forms.Field):
    """A field for a list of objects, which omits empty cells."""

    def __init__(self, columns: Mapping[str, forms.Field], **options: Any) -> None:
        super().__init__(widget=RowsWidget(columns), **options)
        self.columns = columns

    def clean(self, value: list[Row]) -> list[Row]:
        super().clean(value)
        problems: list[str] = []
        cleaned = [self.clean_row(number, row, problems) for number, row in enumerate(value or [], 1)]
        if problems:
            raise ValidationError(problems)
        return cleaned

    def clean_row(self, number: int, row: Row, problems: list[str]) -> Row:
        cleaned = {}
        for column, field in self.columns.items():
            try:
                cleaned[column] = field.clean(row.get(column))
            except ValidationError as problem:
                place = _("Row %(number)d, %(field)s") % {"number": number, "field": field.label}
                problems += [f"{place}: {message}" for message in problem.messages]
        return {column: value for column, value in cleaned.items() if value not in (None, "")}


class LinesField(forms.CharField):
    """A field for a list of texts, one on each line."""

    def __init__(self, **options: Any) -> None:
        options["help_text"] = f"{options['help_text']} {_('One per line, the most important first.')}".strip()
        super().__init__(widget=forms.Textarea(attrs={"rows": 2}), **options)

    def prepare_value(self, value: str | Iterable[str] | None) -> str | None:
        return value if value is None or isinstance(value, str) else "\n".join(map(str, value))

    def clean(self, value: Any) -> list[str]:
        return [line.strip() for line in super().clean(value).splitlines() if line.strip()]


FIELDS: dict[str, Callable[[Rule, Options], forms.Field]] = {
    "string": make_text_field,
    "integer": make_integer_field,
    "number": make_number_field,
    "boolean": make_boolean_field,
}
