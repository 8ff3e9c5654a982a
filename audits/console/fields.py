"""The fields of a new audit's form: its strategy's parameters and its scope, with the cloud's objects as choices.

Fields are made from the JSON Schema of the parameters, and their values are converted back. They are a convenience:
what they hold is validated against the whole schema when the audit is made. A field of an object inside is named after
its path, ``parameter-periods.instance``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string

from audits.operations.scope import compute_rules, exclusions, storage_rules
from cluster.models import ComputeNode, HostAggregate, Pool, StorageNode, VolumeType

Choices = list[tuple[str, str]]
Row = dict[str, Any]
MOST_ROWS = 1000
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
ZONES, AGGREGATES, LEFT_OUT = "scope_zones", "scope_aggregates", "scope_left_out"


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
            choices=[("", "Choose one" if options["required"] else "Not set"), *offered], **options
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


class RowsWidget(forms.Widget):
    """Cells are named ``field.row.column``. Filling in the last row asks the server for another: see ``redraw``."""

    use_fieldset = True
    redraw: Mapping[str, str] = {}

    def __init__(self, columns: Mapping[str, forms.Field]) -> None:
        super().__init__()
        self.columns = columns

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> Any:
        rows = [*(row for row in value or [] if isinstance(row, dict)), {}]
        heads = [field.label for field in self.columns.values()]
        cells = [self.draw_row(name, number, row, number == len(rows) - 1) for number, row in enumerate(rows)]
        return render_to_string("audits/_rows.html", {"heads": heads, "rows": cells})

    def draw_row(self, name: str, number: int, row: Row, is_last: bool) -> list[Any]:
        drawn = []
        for column, field in self.columns.items():
            cell = f"{name}.{number}.{column}"
            look = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            attributes = {"id": f"id_{cell}", "class": look, "aria-label": f"{field.label}, row {number + 1}"}
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
    """Gives a list of objects, without the cells that were left empty."""

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
                problems += [f"Row {number}, {field.label}: {message}" for message in problem.messages]
        return {column: value for column, value in cleaned.items() if value not in (None, "")}


class Lines(forms.CharField):
    """A list of texts, one a line."""

    def __init__(self, **options: Any) -> None:
        options["help_text"] = f"{options['help_text']} One per line, the most important first.".strip()
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


def boxes(label: str, help_text: str, choices: Choices) -> forms.Field:
    return forms.MultipleChoiceField(
        label=label, help_text=help_text, choices=choices, required=False, widget=forms.CheckboxSelectMultiple
    )


def scope_fields() -> dict[str, forms.Field]:
    """Return a field for each kind of object that the cloud has."""
    kinds = {
        ZONES: ("Availability zones", "Only nodes in these zones. None selected: all nodes.", zones()),
        AGGREGATES: (
            "Host aggregates",
            "Nodes of these aggregates, in addition to the zones.",
            host_aggregates(),
        ),
        LEFT_OUT: ("Excluded nodes", "The audit ignores these nodes and the servers on them.", compute_nodes()),
    }
    return {name: boxes(*kind) for name, kind in kinds.items() if kind[-1]}


def scope_in_words(scope: list[Any]) -> list[str]:
    """Return a line for each kind of object that a scope includes, then for each that it excludes."""
    rules = [*compute_rules(scope), *storage_rules(scope)]
    included = [rule for rule in rules if "exclude" not in rule]
    return [*lines(included, "only"), *lines(exclusions(rules), "except")]


def lines(rules: Sequence[Mapping[str, Any]], how: str) -> list[str]:
    entries = {kind: entry for rule in rules for kind, entry in rule.items()}
    return [
        f"{how} {kind.replace('_', ' ')} {', '.join(str(value) for one in entry for value in one.values())}"
        for kind, entry in entries.items()
    ]


def scope_of(cleaned: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the scope that the fields describe: empty, where they narrow nothing."""
    rules = [
        {kind: [{"name": value} for value in cleaned[field]]}
        for field, kind in ((ZONES, "availability_zones"), (AGGREGATES, "host_aggregates"))
        if cleaned.get(field)
    ]
    if left_out := cleaned.get(LEFT_OUT):
        rules.append({"exclude": [{"compute_nodes": [{"name": value} for value in left_out]}]})
    return [{"compute": rules}] if rules else []


def compute_nodes() -> Choices:
    return [(node.hostname, describe_node(node)) for node in ComputeNode.objects.present()]


def describe_node(node: ComputeNode) -> str:
    """Return a node's name and zone, and what keeps it from taking servers, if anything does."""
    obstacles = [word for word in (node.status, node.state, node.power_state) if word in {"disabled", "down", "off"}]
    return ", ".join([f"{node.hostname} in {node.zone}", *map(str, obstacles)])


def storage_pools() -> Choices:
    return [(name, name) for name in Pool.objects.present().values_list("name", flat=True)]


def volume_types() -> Choices:
    return [(name, name) for name in VolumeType.objects.present().values_list("name", flat=True)]


def host_aggregates() -> Choices:
    return [(name, name) for name in HostAggregate.objects.present().values_list("name", flat=True)]


def zones() -> Choices:
    """Return the availability zones of compute and of storage nodes."""
    models = (ComputeNode, StorageNode)
    found = {zone for model in models for zone in model.objects.present().order_by().values_list("zone", flat=True)}
    return [(zone, zone) for zone in sorted(found)]


# By the ``format`` that a strategy's schema gives to a text.
FORMATS: dict[str, Callable[[], Choices]] = {
    "compute-node": compute_nodes,
    "storage-pool": storage_pools,
    "volume-type": volume_types,
}
