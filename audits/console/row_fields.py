"""A form field for a list of small objects: a table with a row for each, and one more to fill in."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string

Row = dict[str, Any]
MOST_ROWS = 1000


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
