"""The rows of tables, which are written without a template."""

from types import SimpleNamespace

import django_tables2 as tables
from django.utils.html import format_html

from watcher_site.console.columns import NumberColumn
from watcher_site.templatetags.tables import table_rows


class ServerRows(tables.Table):
    name = tables.Column(linkify=("cluster:server", {"uuid": tables.A("uuid")}))
    node = tables.Column(accessor="node__hostname", default="none")
    vcpus = NumberColumn(verbose_name="vCPU")
    buttons = tables.Column(empty_values=())

    def render_buttons(self, record: SimpleNamespace) -> str:
        return format_html("<b>{}</b>", record.name)


UUID = "12345678-1234-1234-1234-123456789012"


def rows_of(**values: object) -> str:
    return table_rows(
        ServerRows([SimpleNamespace(**{"uuid": UUID, "name": "web", "node": None, "vcpus": 2, **values})])
    )


def test_row_has_labelled_cells() -> None:
    assert rows_of() == (
        f'<tr class="even"><td  data-label="Name"><div><a href="/console/servers/{UUID}/">web</a></div></td>'
        '<td  data-label="Node"><div>none</div></td>'
        '<td class="number text-end text-nowrap" data-label="vCPU"><div>2</div></td>'
        '<td  data-label="Buttons"><div><b>web</b></div></td></tr>'
    )


def test_markup_in_a_value_is_escaped() -> None:
    text = rows_of(name="<script>")
    assert "<script>" not in text
    assert text.count("&lt;script&gt;") == 2


def test_empty_cell_has_no_content() -> None:
    assert '<td  data-label="Buttons"></td>' in table_rows(EmptyButtons([SimpleNamespace(buttons="")]))


class EmptyButtons(tables.Table):
    buttons = tables.Column(empty_values=(), default="")
