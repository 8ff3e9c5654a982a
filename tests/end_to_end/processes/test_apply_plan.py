"""Real ``manage.py apply_plan`` processes: without an applier, beside an applier, and in a terminal."""

import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from threading import Thread

import pytest
from django.utils import timezone

from actions.models import Action, ActionEvent
from plans.models import ActionPlan
from tests.builders import make_plan
from tests.end_to_end.processes.test_applier_processes import is_asleep, make_sleepy_plan, state
from tests.processes import Process, command_environment, start_command, start_fresh_command
from tests.waiting import PATIENCE, wait_for
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ENVIRONMENT = {"WATCHER_POLL_INTERVAL": "0.1"}


class Terminal:
    """A terminal with a process; ``text`` is the output of the process."""

    def __init__(self, plan: ActionPlan) -> None:
        self.text = ""
        self.ours, theirs = os.openpty()
        environment = command_environment({**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "120"})
        self.process = Process(
            *("manage.py", "apply_plan", str(plan.uuid)),
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            loaded=True,
        )
        os.close(theirs)
        self.reader = Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        while True:
            try:
                self.text += os.read(self.ours, 4096).decode(errors="replace")
            except OSError:
                return

    def await_text(self, text: str) -> None:
        wait_for(lambda: text in self.text)

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.join(PATIENCE)
        os.close(self.ours)


def start(*arguments: str) -> Process:
    return start_command(*arguments, **ENVIRONMENT)


@pytest.fixture
def terminal() -> Iterator[Callable[[ActionPlan], Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(plan: ActionPlan) -> Terminal:
        opened.append(Terminal(plan))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def test_plan_is_run_without_an_applier() -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    process = start_fresh_command("apply_plan", str(plan.uuid), **ENVIRONMENT)
    assert process.communicate(timeout=PATIENCE) == ("SUCCEEDED\n", "")
    assert (process.returncode, state(plan)) == (0, "SUCCEEDED")
    assert not Service.objects.present().exists()


def test_failed_plan_exits_with_status_3() -> None:
    plan = make_plan({"a": []})
    plan.actions.update(input_parameters={"message": "a", "fail_execute": True})
    process = start("apply_plan", str(plan.uuid))
    printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    assert printed.startswith(f"FAILED nop a ({plan.actions.get().uuid}): Action failed in execute: ")
    assert "FAILED 1 of 1 action failed:" in printed


def test_two_apply_plan_processes_and_an_applier_execute_each_action_once() -> None:
    graph = {str(number): [str(number - 2)] if number > 1 else [] for number in range(40)}
    holder = Service.register(Service.APPLIER, "elsewhere")
    Service.objects.filter(pk=holder.pk).update(last_seen_up=timezone.now() + timedelta(hours=1))
    plan = make_plan(graph, state="ONGOING", applier=holder, hostname="elsewhere")
    applier = start("run_applier")
    try:
        both = [start("apply_plan", str(plan.uuid)) for _ in range(2)]
        wait_for(lambda: Service.objects.present().count() == 4)
        holder.retire()  # From now on each of the three processes may adopt the plan.
        assert [process.wait(PATIENCE) for process in both] == [0, 0]
    finally:
        applier.kill()
        applier.communicate()
    assert ActionEvent.objects.filter(event="execute").count() == len(graph)


def test_sigterm_releases_the_plan_to_the_appliers() -> None:
    plan = make_sleepy_plan(2)
    process = start("apply_plan", str(plan.uuid))
    wait_for(lambda: is_asleep(plan))
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, state(plan)) == (130, "ONGOING")
    assert printed.endswith("The action plan is ONGOING. The next free applier continues it.\n")
    assert list(plan.actions.order_by("pk").values_list("state", flat=True)) == ["SUCCEEDED", "SUCCEEDED", "PENDING"]
    assert ActionPlan.objects.get(pk=plan.pk).applier is None


def test_ctrl_c_shows_a_prompt_that_cancels_the_plan(terminal: Callable[[ActionPlan], Terminal]) -> None:
    plan = make_sleepy_plan(60)
    shown = terminal(plan)
    wait_for(lambda: is_asleep(plan))
    shown.interrupt()
    shown.await_text("[c]ancel the plan")
    shown.type("c\n")
    assert shown.process.wait(PATIENCE) == 4
    assert state(plan) == "CANCELLED"
    shown.await_text("CANCELLED Action plan was cancelled by ")


def test_progress_bar_shows_the_numbers_of_actions(terminal: Callable[[ActionPlan], Terminal]) -> None:
    shown = terminal(make_plan({"a": [], "b": ["a"]}))
    assert shown.process.wait(PATIENCE) == 0
    shown.await_text("2/2")
    shown.await_text("2 SUCCEEDED")


def test_second_ctrl_c_detaches_and_third_exits_immediately(terminal: Callable[[ActionPlan], Terminal]) -> None:
    plan = make_sleepy_plan(60)
    shown = terminal(plan)
    wait_for(lambda: is_asleep(plan))
    shown.interrupt()
    shown.await_text("[c]ancel the plan")
    shown.interrupt()
    shown.await_text("Ctrl-C exits immediately.")
    shown.interrupt()
    assert shown.process.wait(PATIENCE) == 130
    assert Action.objects.filter(state="ONGOING").count() == 1
