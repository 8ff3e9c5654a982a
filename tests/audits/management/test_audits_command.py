"""``manage.py audits``: create, list, cancel, suspend, resume and trigger audits."""

from pathlib import Path

import pytest

from audits.models import Audit, AuditTemplate
from tests.builders import make_audit, make_strategy
from tests.command_runs import Run, run
from watcher_site.models import HistoryEntry

__all__ = ["run"]


def test_create_prints_the_uuid_of_the_audit(run: Run) -> None:
    make_strategy()
    ended = run("audits", "create", "--goal", "dummy", "--name", "tonight", "--as", "alice")
    audit = Audit.objects.get()
    assert ended == (0, f"{audit.uuid}\n", "")
    assert (audit.name, audit.audit_type, audit.state) == ("tonight", "ONESHOT", "PENDING")
    assert HistoryEntry.objects.get(deed="audit.create").user == "alice"


def test_create_accepts_parameters_as_json_or_text_and_a_scope_file(run: Run, tmp_path: Path) -> None:
    strategy = make_strategy()
    strategy.parameters_spec = {"properties": {"para1": {"type": "number"}, "para2": {"type": "string"}}}
    strategy.save()
    scope = tmp_path / "scope.json"
    scope.write_text('[{"compute": []}]')
    arguments = ["--goal", "dummy", "--strategy", "dummy", "--parameter", "para1=3", "--parameter", "para2=a=b"]
    assert run("audits", "create", *arguments, "--scope", scope).status == 0
    audit = Audit.objects.get()
    assert (audit.parameters["para1"], audit.parameters["para2"]) == (3, "a=b")
    assert audit.scope == [{"compute": []}]


def test_create_accepts_the_name_of_a_template(run: Run) -> None:
    strategy = make_strategy()
    AuditTemplate.objects.create(name="nightly", goal=strategy.goal, strategy=strategy)
    arguments = ["--template", "nightly", "--type", "continuous", "--interval", "600", "--format", "json"]
    created = run("audits", "create", *arguments).json
    assert (created["strategy_name"], created["audit_type"], created["interval"]) == ("dummy", "CONTINUOUS", "600")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--goal", "nosuch"],
        ["--goal", "dummy", "--name", " "],
        ["--template", "nosuch"],
        ["--goal", "dummy", "--type", "weekly"],
        ["--goal", "dummy", "--parameter", "para1"],
        ["--goal", "dummy", "--scope", "/nosuch"],
        ["--goal", "dummy", "--interval", "600"],
        ["--goal", "dummy", "--format", "xml"],
    ],
    ids=str,
)
def test_create_refuses_invalid_arguments_in_one_line_with_status_2(run: Run, arguments: list[str]) -> None:
    make_strategy()
    ended = run("audits", "create", *arguments)
    assert (ended.status, ended.output, ended.errors.count("\n")) == (2, "", 1)


def test_second_cancel_is_refused_with_status_2(run: Run) -> None:
    audit = make_audit("tonight")
    assert run("audits", "cancel", "tonight", "--yes").output == f"audit {audit.uuid} (tonight): CANCELLED\n"
    ended = run("audits", "cancel", "tonight", "--yes")
    assert ended == (
        2,
        "",
        f"CommandError: The ONESHOT audit {audit.uuid} (tonight) is CANCELLED, and cannot be cancelled.\n",
    )


def test_continuous_audit_is_suspended_and_resumed(run: Run) -> None:
    make_audit("series", audit_type="CONTINUOUS", interval="600", state="ONGOING")
    assert run("audits", "suspend", "series").output.endswith("SUSPENDED\n")
    assert run("audits", "resume", "series").output.endswith("ONGOING\n")


def test_trigger_is_refused_for_audits_other_than_event(run: Run) -> None:
    make_audit("event", audit_type="EVENT", state="SUCCEEDED")
    make_audit("once")
    assert run("audits", "trigger", "event").output.endswith("PENDING\n")
    assert run("audits", "trigger", "once").status == 2


def test_list_filters_by_state_and_goal(run: Run) -> None:
    make_audit("first", state="FAILED")
    make_audit("second")
    listed = run("audits", "list", "--state", "failed", "--goal", "dummy", "--columns", "name")
    assert listed.output == "NAME\nfirst\n"


def test_list_shows_status_messages(run: Run) -> None:
    make_audit(name="first", state=Audit.State.FAILED, status_message="There are no metrics.")
    table = run("audits", "list").output
    assert table.splitlines()[0].rstrip().endswith("STATUS MESSAGE")
    assert "There are no metrics." in " ".join(table.split())
    assert run("audits", "list", "--format", "csv").output.splitlines()[0].endswith(",status_message")
    (row,) = run("audits", "list", "--format", "json").json
    assert row["status_message"] == "There are no metrics."


def test_goals_and_strategies_are_listed_and_shown(run: Run) -> None:
    make_strategy("saving", "energy")
    assert "energy" in run("goals", "list").output
    assert run("strategies", "show", "saving", "--format", "json").json["goal_name"] == "energy"


def test_long_name_is_refused_with_the_limit(run: Run) -> None:
    ended = run("audits", "create", "--goal", "dummy", "--name", "n" * 64)
    assert (ended.status, ended.errors) == (2, "CommandError: --name: must have at most 63 characters, and has 64.\n")
    assert not Audit.objects.exists()
