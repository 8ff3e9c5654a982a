"""`manage.py plans`: action plans in a terminal."""

from typing import cast
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries, Settings

from actions.models import Action
from plans.applier import foreground
from plans.models import ActionPlan
from tests.builders import action, make_audit, make_plan, make_server
from tests.command_runs import Run, newest, run
from tests.plans.inline import run_waiting
from watcher_site.models import HistoryEntry

__all__ = ["run"]
FIRST, SECOND = UUID("aa11" + "0" * 28), UUID("aa22" + "0" * 28)
# Checks of migrations, the plans, their titles, and the names of actions and servers in their messages.
QUERIES = 5


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def test_list_is_a_table_with_short_uuids_of_other_objects(run: Run) -> None:
    audit = make_audit("Tonight")
    plan = make_plan(audit=audit, strategy=audit.strategy)
    columns = "uuid,title,state,strategy_name,audit_uuid"
    heading, row = run("plans", "list", "--columns", columns).output.splitlines()
    assert heading.split()[:4] == ["UUID", "TITLE", "STATE", "STRATEGY"]
    assert row.split() == [str(plan.uuid), "Tonight", "RECOMMENDED", "dummy", str(audit.uuid)[:8]]


@pytest.mark.parametrize(("format", "is_named"), [("table", True), ("csv", False), ("json", False)])
@pytest.mark.parametrize("subcommand", [["list"], ["show"]])
def test_message_names_objects_in_tables_only(run: Run, subcommand: list[str], format: str, *, is_named: bool) -> None:
    server = make_server("web-1")
    plan = make_plan({"a": []})
    ActionPlan.objects.update(status_message=f"1 action failed: Instance {server.uuid} could not be found.")
    output = run("plans", *subcommand, *([plan.uuid] if subcommand == ["show"] else []), "--format", format).output
    assert ("Instance web-1 could" in output, f"Instance {server.uuid} could" in output) == (is_named, not is_named)


@pytest.mark.parametrize("number", [2, 8])
def test_query_count_of_a_list_does_not_depend_on_the_number_of_messages(
    run: Run, number: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    plans = [make_plan({"a": []}) for _ in range(number)]
    for plan in plans:
        ActionPlan.objects.filter(pk=plan.pk).update(status_message=f"{make_server(f'web-{plan.pk}').uuid} failed.")
    with django_assert_num_queries(QUERIES):
        run("plans", "list")


def test_json_has_the_fields_of_the_newest_microversion(run: Run, cloud_admin: User) -> None:
    plan = make_plan({"a": []})
    answer = newest(cloud_admin).get(f"/action_plans/{plan.uuid}").json()
    (listed,) = run("plans", "list", "--format", "json").json
    assert listed.pop("title") == plan.called
    assert {**listed, "links": None} == {**answer, "links": None}


def test_chosen_column_is_printed_in_every_format(run: Run) -> None:
    plan = make_plan()
    assert run("plans", "list", "--columns", "uuid").output == f"UUID\n{plan.uuid}\n"
    assert run("plans", "list", "--columns", "uuid", "--format", "csv").output == f"uuid\r\n{plan.uuid}\r\n"
    assert run("plans", "list", "--columns", "uuid", "--format", "json").json == [{"uuid": str(plan.uuid)}]


def test_list_is_filtered_sorted_and_limited(run: Run) -> None:
    audit = make_audit("nightly")
    plans = [make_plan(audit=audit, state=state) for state in ("FAILED", "CANCELLED", "SUCCEEDED")]
    make_plan(state="FAILED")
    arguments = ["--audit", "nightly", "--state", "failed", "--state", "SUCCEEDED", "--sort", "state:desc"]
    found = run("plans", "list", *arguments, "--columns", "uuid", "--format", "json").json
    assert found == [{"uuid": str(plan.uuid)} for plan in (plans[2], plans[0])]
    assert len(run("plans", "list", *arguments, "--limit", 1, "--format", "json").json) == 1


def test_list_has_all_rows_beyond_the_page_limit_of_the_api(run: Run, settings: Settings) -> None:
    settings.API_MAX_LIMIT = 2
    plans = [make_plan() for _ in range(5)]
    printed = run("plans", "list", "--columns", "uuid").output.split()
    assert printed == ["UUID", *(str(plan.uuid) for plan in plans)]
    assert len(run("plans", "list", "--limit", 3).output.splitlines()) == 4


def test_list_query_count_does_not_depend_on_the_number_of_plans(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(2):
        make_plan()
        with django_assert_num_queries(3):
            run("plans", "list")


def test_plan_is_shown_by_a_prefix_of_its_uuid(run: Run) -> None:
    make_plan(uuid=FIRST)
    make_plan(uuid=SECOND)
    assert run("plans", "show", "aa11", "--format", "json").json["uuid"] == str(FIRST)


def test_ambiguous_uuid_is_refused_with_the_candidates_and_status_2(run: Run) -> None:
    make_plan(uuid=FIRST)
    make_plan(uuid=SECOND)
    ended = run("plans", "show", "aa")
    assert (ended.status, ended.output) == (2, "")
    assert ended.errors == f"CommandError: action plan: aa is ambiguous: {FIRST}, {SECOND}.\n"


@pytest.mark.parametrize("subcommand", ["show", "preflight", "approve", "cancel", "start", "suspend", "continue"])
def test_unknown_plan_is_refused_in_one_line_with_status_2(run: Run, subcommand: str) -> None:
    ended = run("plans", subcommand, "aa11")
    assert ended == (2, "", "CommandError: There is no action plan aa11.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nosuch"],
        ["list", "--format", "xml"],
        ["list", "--sort", "nosuch"],
        ["list", "--sort", "state:up"],
        ["list", "--limit", "0"],
        ["list", "--limit", "many"],
        ["list", "--columns", "nosuch"],
        ["list", "--state", "DONE"],
        ["show"],
        ["show", ""],
        ["list", "--audit", ""],
        ["show", "a\0b"],
        ["start", "aa11", "--wait", "--timeout", "soon"],
        ["start", "aa11", "--yes", "--timeout", "3"],
        ["schedule", "aa11", "--at", "soon"],
    ],
    ids=" ".join,
)
def test_invalid_input_is_refused_in_one_line_with_status_2(run: Run, arguments: list[str]) -> None:
    make_plan(uuid=FIRST)
    ended = run("plans", *arguments)
    assert (ended.status, ended.output, ended.errors.count("\n")) == (2, "", 1)


def test_plan_is_started_on_behalf_of_the_user_named_by_as(run: Run) -> None:
    plan = make_plan({"a": []})
    ended = run("plans", "start", plan.uuid, "--yes", "--as", "alice")
    assert ended == (0, f"action plan {plan.uuid} (nop): PENDING\n", "")
    assert (again(plan).state, again(plan).started_by) == ("PENDING", "alice")
    assert HistoryEntry.objects.get(deed="action_plan.start").user == "alice"


def test_start_without_a_terminal_requires_yes(run: Run) -> None:
    plan = make_plan({"a": []})
    ended = run("plans", "start", plan.uuid)
    assert (ended.status, ended.errors.count("\n"), "--yes" in ended.errors) == (2, 1, True)
    assert again(plan).state == "RECOMMENDED"


@pytest.mark.parametrize(("answer", "status", "state"), [("y\n", 0, "PENDING"), ("\n", 1, "RECOMMENDED")])
def test_start_at_a_terminal_requires_confirmation(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, status: int, state: str
) -> None:
    plan = make_plan({"a": []})
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: answer, raising=False)
    ended = run("plans", "start", plan.uuid)
    assert (ended.status, again(plan).state) == (status, state)
    assert f"Start the action plan {plan.uuid} (nop)? [y/N]" in ended.errors


def test_ended_plan_cannot_be_started(run: Run) -> None:
    plan = make_plan(state="SUCCEEDED")
    ended = run("plans", "start", plan.uuid, "--yes")
    assert (ended.status, ended.errors.count("\n"), "is SUCCEEDED" in ended.errors) == (2, 1, True)
    assert HistoryEntry.objects.filter(deed="command.plans.start", outcome="refused").exists()


@pytest.fixture
def applier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the pending plans whenever a command waits."""
    monkeypatch.setattr(foreground.time, "sleep", lambda _: run_waiting())


@pytest.mark.usefixtures("applier")
def test_start_with_wait_exits_with_0_when_the_plan_succeeds(run: Run) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    ended = run("plans", "start", plan.uuid, "--yes", "--wait")
    assert (ended.status, ended.output.splitlines()[-1], again(plan).state) == (0, "SUCCEEDED", "SUCCEEDED")


@pytest.mark.usefixtures("applier")
def test_start_with_wait_names_the_failed_action_and_exits_with_1(run: Run) -> None:
    plan = make_plan({"a": []})
    plan.actions.update(input_parameters={"message": "a", "fail_execute": True})
    failing = Action.objects.get()
    ended = run("plans", "start", plan.uuid, "--yes", "--wait")
    assert (ended.status, again(plan).state) == (1, "FAILED")
    assert f"({failing.uuid})" in ended.output


@pytest.mark.usefixtures("applier")
def test_start_with_wait_names_the_objects_in_messages_with_their_uuids(run: Run) -> None:
    plan = make_plan({"a": []})
    server = str(make_server("web-1").uuid)
    parameters = {"resource_id": server, "resource_name": "web-1", "migration_type": "live", "source_node": "gone"}
    plan.actions.update(action_type="migrate", input_parameters=parameters)
    skipped = f"migrate web-1 ({Action.objects.get().uuid})"
    *_, of_action, of_plan = run("plans", "start", plan.uuid, "--yes", "--wait").output.splitlines()
    assert of_action.startswith(f"SKIPPED {skipped}: ")
    assert f"Instance web-1 ({server}) is not running" in of_action
    assert f"{skipped} (Instance web-1 ({server})" in of_plan


def test_start_with_wait_reports_a_missing_applier_and_exits_with_1_after_the_timeout(run: Run) -> None:
    plan = make_plan({"a": []})
    ended = run("plans", "start", plan.uuid, "--yes", "--wait", "--timeout", 0)
    assert ended.status == 1
    assert ended.output.splitlines()[1:] == [
        foreground.NO_APPLIER,
        "The action plan is still PENDING after 0 seconds.",
    ]


@pytest.mark.usefixtures("applier")
def test_start_with_wait_and_a_format_prints_only_the_result(run: Run) -> None:
    plan = make_plan({"a": []})
    ended = run("plans", "start", plan.uuid, "--yes", "--wait", "--format", "json")
    assert (ended.status, ended.json["uuid"]) == (0, str(plan.uuid))


def test_plan_is_suspended_resumed_and_cancelled(run: Run) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    assert run("plans", "suspend", plan.uuid).output == f"action plan {plan.uuid} (nop): PENDING, suspended\n"
    assert run("plans", "resume", plan.uuid).output == f"action plan {plan.uuid} (nop): PENDING\n"
    assert run("plans", "cancel", plan.uuid, "--yes").output == f"action plan {plan.uuid} (nop): CANCELLED\n"
    assert run("plans", "suspend", plan.uuid).status == 2


def test_resuming_a_plan_that_is_not_suspended_says_so(run: Run) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    ended = run("plans", "resume", plan.uuid)
    assert (ended.status, ended.output) == (0, f"action plan {plan.uuid} (nop): PENDING, was not suspended\n")


def test_resuming_a_plan_with_a_suspended_action_reports_only_its_state(run: Run) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state=Action.State.SUSPENDED)
    assert run("plans", "resume", plan.uuid).output == f"action plan {plan.uuid} (nop): ONGOING\n"


def test_restored_plans_are_suspended_and_counted(run: Run) -> None:
    for state in ("PENDING", "ONGOING", "CANCELLING"):
        make_plan({"a": []}, state=state)
    assert run("plans", "suspend-restored", "--yes", "--as", "olga").output == "2 action plans suspended\n"
    assert set(HistoryEntry.objects.values_list("user", "deed")) == {("olga", "action_plan.signal")}


@pytest.mark.parametrize(("answer", "status", "is_suspended"), [("y\n", 0, True), ("\n", 1, False)])
def test_suspension_of_restored_plans_at_a_terminal_requires_confirmation(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, status: int, *, is_suspended: bool
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: answer, raising=False)
    ended = run("plans", "suspend-restored")
    assert (ended.status, again(plan).is_suspended) == (status, is_suspended)
    assert "Suspend 1 action plan? [y/N]" in ended.errors


def test_suspension_of_restored_plans_without_a_terminal_requires_yes(run: Run) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    ended = run("plans", "suspend-restored")
    assert (ended.status, "--yes" in ended.errors, again(plan).is_suspended) == (2, True, False)


def test_suspension_of_restored_plans_requires_no_confirmation_if_there_are_none(run: Run) -> None:
    make_plan({"a": []}, state="PENDING")
    run("plans", "suspend-restored", "--yes")
    assert run("plans", "suspend-restored") == (0, "0 action plans suspended\n", "")


def test_restored_plans_are_printed_in_a_format(run: Run) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    (printed,) = cast("list[dict[str, str]]", run("plans", "suspend-restored", "--yes", "--format", "json").json)
    assert (printed["uuid"], printed["title"]) == (str(plan.uuid), "nop")
    assert printed["status_message"].startswith("Suspended after a restore")


def test_failed_plan_is_continued_by_a_new_plan(run: Run) -> None:
    plan = make_plan({"a": []}, state="FAILED")
    plan.actions.update(state="FAILED")
    continued = run("plans", "continue", plan.uuid, "--format", "json").json
    assert (continued["continues_uuid"], continued["state"]) == (str(plan.uuid), "RECOMMENDED")


def test_plan_is_approved_and_started_by_another_user(run: Run, settings: Settings) -> None:
    settings.PLAN_APPROVAL = True
    plan = make_plan({"a": []})
    refused = run("plans", "start", plan.uuid, "--yes", "--as", "alice")
    assert refused.errors == f"CommandError: Action plan {plan.uuid} requires the approval of another user.\n"
    approved = run("plans", "approve", plan.uuid, "--as", "bob")
    assert approved.output == f"action plan {plan.uuid} (nop): RECOMMENDED, approved by bob\n"
    assert run("plans", "start", plan.uuid, "--yes", "--as", "bob").status == 2
    assert run("plans", "start", plan.uuid, "--yes", "--as", "alice").status == 0
    assert again(plan).state == "PENDING"


def test_approval_is_withdrawn(run: Run, settings: Settings) -> None:
    settings.PLAN_APPROVAL = True
    plan = make_plan({"a": []}, approved_by="bob")
    withdrawn = run("plans", "withdraw-approval", plan.uuid)
    assert withdrawn.output == f"action plan {plan.uuid} (nop): RECOMMENDED, not approved\n"
    assert again(plan).approved_by is None


def test_approval_on_a_site_without_approvals_is_refused(run: Run) -> None:
    ended = run("plans", "approve", make_plan({"a": []}).uuid)
    assert (ended.status, "WATCHER_PLAN_APPROVAL" in ended.errors) == (2, True)


@pytest.mark.parametrize("command", [["apply_plan"], ["schedule_plan", "--at", "2090-01-31T22:00", "--start"]])
def test_commands_that_start_a_plan_require_the_approval(run: Run, settings: Settings, command: list[str]) -> None:
    settings.PLAN_APPROVAL = True
    plan = make_plan({"a": []})
    ended = run(*command, plan.uuid)
    assert (ended.status, "requires the approval of another user" in ended.errors) == (2, True)
    assert (again(plan).state, again(plan).start_at) == ("RECOMMENDED", None)


def test_plan_is_scheduled(run: Run) -> None:
    plan = make_plan({"a": []})
    ended = run("plans", "schedule", plan.uuid, "--at", "2090-01-31T22:00")
    assert ended.output == "The action plan is RECOMMENDED and may begin from 2090-01-31 22:00 UTC on.\n"


def test_preflight_of_a_plan_that_would_succeed_exits_with_0(run: Run) -> None:
    plan = make_plan({"a": [], "b": []})
    assert run("plans", "preflight", plan.uuid) == (0, "Foreseen: 2 SUCCEEDED.\n", "")


@pytest.mark.parametrize("format", ["table", "csv"])
def test_preflight_lists_actions_that_would_not_succeed_and_exits_with_1(run: Run, format: str) -> None:
    plan = make_plan({"a": [], "b": []})
    failing = action(plan, "b")
    Action.objects.filter(pk=failing.pk).update(input_parameters={"message": "b", "fail_pre_condition": True})
    ended = run("plans", "preflight", plan.uuid, "--format", format)
    summary = "Foreseen: 1 SUCCEEDED, 1 FAILED.\n"
    assert (ended.status, str(failing.uuid) in ended.output) == (1, True)
    assert (ended.output if format == "table" else ended.errors).endswith(summary)


def test_preflight_in_json_has_the_fields_of_the_api(run: Run, cloud_admin: User) -> None:
    plan = make_plan({"a": [], "b": []})
    Action.objects.filter(pk=action(plan, "b").pk).update(action_type="nosuch")
    answer = newest(cloud_admin).get(f"/action_plans/{plan.uuid}/preflight").json()
    del answer["action_plan_uuid"], answer["actions"][0]["links"]
    assert run("plans", "preflight", plan.uuid, "--format", "json").json == answer


@pytest.mark.parametrize("command", [["plans", "preflight"], ["preflight_plan"]])
def test_preflight_names_servers_instead_of_their_uuids(run: Run, command: list[str]) -> None:
    plan = make_plan({"a": []})
    identifier = str(uuid4())
    parameters = {
        "migration_type": "live",
        "source_node": "compute-01",
        "resource_id": identifier,
        "resource_name": "web-1",
    }
    plan.actions.update(action_type="migrate", target=identifier, input_parameters=parameters)
    output = run(*command, plan.uuid).output
    assert "Instance web-1 not found" in output
    assert identifier[:8] not in output


def test_former_commands_still_work(run: Run) -> None:
    plan = make_plan({"a": []})
    assert run("preflight_plan", plan.uuid).output == "Foreseen: 1 SUCCEEDED.\n"
    assert run("schedule_plan", plan.uuid, "--start").status == 0
    assert run("signal_plan", plan.uuid, "CANCEL").output == "CANCELLED\n"
    assert run("signal_plan", plan.uuid, "CANCEL").status == 2


@pytest.mark.parametrize(
    "command",
    [["preflight_plan"], ["schedule_plan", "--zone", "UTC"], ["signal_plan", "SUSPEND"]],
    ids=str,
)
def test_former_command_accepts_the_beginning_of_a_uuid(run: Run, command: list[str]) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    name, *arguments = command
    assert run(name, str(plan.uuid)[:13], *arguments).status == 0


def test_former_command_refuses_an_unknown_plan_with_status_2(run: Run) -> None:
    assert run("preflight_plan", "5fdd8a4d") == (2, "", "CommandError: There is no action plan 5fdd8a4d.\n")
