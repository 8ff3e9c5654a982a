"""``manage.py actions``: list, show, skip, restore and signal actions."""

from actions.models import Action
from tests.builders import action, make_plan, make_server
from tests.command_runs import Run, run

__all__ = ["run"]


def states() -> set[str]:
    return set(Action.objects.values_list("state", flat=True))


def test_list_filters_by_a_uuid_prefix_of_the_plan(run: Run) -> None:
    plan = make_plan({"a": [], "b": []})
    make_plan({"c": []})
    listed = run("actions", "list", "--plan", str(plan.uuid)[:13], "--format", "json").json
    assert {row["action_plan_uuid"] for row in listed} == {str(plan.uuid)}
    assert len(listed) == 2


def test_title_of_an_action_contains_the_name_of_its_target(run: Run) -> None:
    server = make_server("web-1")
    plan = make_plan({"a": []})
    plan.actions.update(
        action_type="migrate", input_parameters={"resource_id": str(server.uuid), "resource_name": "web-1"}
    )
    (listed,) = run("actions", "list", "--format", "json").json
    assert listed["title"] == "migrate web-1"
    assert run("actions", "list").output.splitlines()[1].split()[1:4] == ["migrate", "web-1", "PENDING"]
    assert "migrate web-1" in run("actions", "show", listed["uuid"]).output


def test_an_action_is_skipped_with_a_reason_and_restored(run: Run) -> None:
    skipped = action(make_plan({"a": []}), "a")
    ended = run("actions", "skip", skipped.uuid, "--reason", "Not before Sunday", "--as", "alice")
    assert ended.status == 0
    assert ended.output.endswith("SKIPPED: Action skipped by user. Reason: Not before Sunday\n")
    assert Action.objects.get().skipped_by == "alice"
    assert run("actions", "restore", skipped.uuid).output.endswith("PENDING\n")


def test_outcome_names_the_objects_in_the_message_with_their_uuids(run: Run) -> None:
    skipped, server = action(make_plan({"a": []}), "a"), make_server("web-1")
    ended = run("actions", "skip", skipped.uuid, "--reason", f"as {server.uuid} is new")
    assert ended.output.endswith(f"Reason: as web-1 ({server.uuid}) is new\n")


def test_several_actions_are_skipped_all_or_none(run: Run) -> None:
    plan = make_plan({"a": [], "b": []})
    uuids = [action(plan, name).uuid for name in "ab"]
    assert run("actions", "skip", *uuids, "--format", "csv").output.count("SKIPPED") == 2
    run("actions", "restore", uuids[0])
    assert run("actions", "skip", *uuids).status == 2
    assert Action.objects.get(uuid=uuids[0]).state == "PENDING"


def test_actions_of_different_plans_are_refused(run: Run) -> None:
    uuids = [action(make_plan({"a": []}), "a").uuid]
    other = make_plan({"b": []})
    ended = run("actions", "skip", *uuids, action(other, "b").uuid)
    assert (ended.status, ended.errors) == (2, "CommandError: action: the actions must be of one action plan.\n")
    assert states() == {"PENDING"}


def test_action_of_a_running_plan_cannot_be_skipped(run: Run) -> None:
    running = action(make_plan({"a": []}, state="ONGOING"), "a")
    ended = run("actions", "skip", running.uuid)
    assert (ended.status, ended.output, ended.errors.count("\n")) == (2, "", 1)


def test_refusal_names_the_action_and_its_state(run: Run) -> None:
    ended_action = action(make_plan({"a": []}), "a")
    Action.objects.update(state="SUCCEEDED")
    assert run("actions", "skip", ended_action.uuid).errors == (
        f"CommandError: action {ended_action.uuid} (nop a) is SUCCEEDED, and cannot be skipped.\n"
    )


def test_running_action_is_suspended_and_cancelled(run: Run) -> None:
    running = action(make_plan({"a": []}, state="ONGOING"), "a")
    Action.objects.update(state="ONGOING")
    assert run("actions", "suspend", running.uuid).output.endswith("ONGOING, SUSPEND pending\n")
    assert run("actions", "cancel", running.uuid, "--yes").status == 0
