"""The rows of tables, which are written without a template."""

import re
from types import SimpleNamespace

import django_tables2 as tables
import pytest
from django.template.loader import get_template
from django.test import RequestFactory
from django.utils.html import format_html

from watcher_site.console.columns import NumberColumn
from watcher_site.templatetags.tables import breakable, table_rows


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


class WithOptionalColumns(tables.Table):
    name = tables.Column()
    task = tables.Column(default="")
    problem = tables.Column(default="", orderable=False)


@pytest.mark.parametrize(
    ("problems", "heads"), [([None, None], ["Name", "Task"]), ([None, "It failed."], ["Name", "Task", "Problem"])]
)
def test_column_without_content_is_shown_only_if_the_table_can_be_sorted_by_it(
    problems: list[str | None], heads: list[str]
) -> None:
    table = WithOptionalColumns([{"name": "web", "task": None, "problem": problem} for problem in problems])
    html = get_template("table.html").render({"table": table, "request": RequestFactory().get("/")})
    assert re.findall(r"<th [^>]*>\s*(?:<a[^>]*>)?([^<]*?)\s*<", html) == heads
    assert re.findall('data-label="(.*?)"', html) == heads * 2


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("workload_balance", "workload_<wbr>balance"),
        ("compute-1.example.org", "compute-1.<wbr>example.<wbr>org"),
        ("rosa@example", "rosa@<wbr>example"),
        ("1.5 GB", "1.5 GB"),
        ("It failed. Retry…", "It failed. Retry…"),
        ('<a href="/a_b" title="a_b">a_b</a>', '<a href="/a_b" title="a_b">a_<wbr>b</a>'),
    ],
)
def test_names_in_cells_can_be_broken_after_separators(html: str, expected: str) -> None:
    assert breakable(html) == expected
