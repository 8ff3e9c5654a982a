"""The load of a site during an upgrade: users who read, run plans, change exclusions and operate clusters."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import Any, NoReturn

from tests.end_to_end.upgrades.site import Client, change_of_state

COLLECTIONS = (
    *("goals", "strategies", "audit_templates", "audits", "action_plans", "actions", "services", "scoring_engines"),
    *("exclusions", "servers", "clusters", "nodes", "profiles", "policies", "stacks", "subscriptions", "history"),
)
# In seconds: an audit or an operation of a cluster that takes longer counts as lost.
LONGEST = 90


class Stopped(Exception):
    """Raised in the threads of the load when it ends."""


class Load:
    """Threads that call the web processes of a site in turn, and their failures."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self.clients = clients
        self.turn, self.lock = 0, Lock()
        self.stopping = Event()
        self.failures: list[str] = []
        self.requests: Counter[str] = Counter()
        self.slowest = 0.0
        self.started: set[str] = set()
        self.skipped: set[str] = set()
        self.capacities: dict[str, int] = {}
        self.threads: list[Thread] = []

    def start(self) -> None:
        work = (self.read_everything, self.run_plan, self.operate_cluster, self.change_exclusions)
        self.threads = [Thread(target=self.repeat, args=(one, number)) for number, one in enumerate(work)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Stop, and wait until each thread has received the response to its last request."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def wait(self, seconds: float) -> None:
        """Wait for the given time, or until a failure."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.failures:
            time.sleep(0.1)

    def repeat(self, work: Callable[[str], None], number: int) -> None:
        try:
            for turn in range(1_000_000):
                work(f"{work.__name__}-{number}-{turn}")
        except Stopped:
            return

    def call(self, expected: int, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the next web process, and return the body of its response."""
        if self.stopping.is_set():
            raise Stopped
        with self.lock:
            self.turn += 1
            client = self.clients[self.turn % len(self.clients)]
        begun = time.monotonic()
        status, answer = client.call(method, path, body)
        with self.lock:
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.requests[client.address] += 1
        if status != expected:
            self.fail(f"{method} {client.address}{path}: {status} {answer!r:.300}")
        return answer

    def fail(self, failure: str) -> NoReturn:
        with self.lock:
            self.failures.append(failure)
        raise Stopped

    def wait_until(self, read: Callable[[], Any], failure: str) -> Any:
        """Return the first true value of ``read``; fail after `LONGEST` seconds."""
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            if found := read():
                return found
            if self.stopping.wait(0.2):
                raise Stopped
        return self.fail(failure)

    def read_everything(self, name: str) -> None:
        for collection in COLLECTIONS:
            self.call(200, "GET", f"/v1/{collection}?limit=50")
            self.stopping.wait(0.05)

    def run_plan(self, name: str) -> None:
        """Create a plan by an audit, skip an action of it, and start it.

        Only one thread does so: the plan of an audit supersedes a recommended plan of the same strategy.
        """
        strategy = {"goal": "dummy", "strategy": "dummy", "parameters": {"para1": 1.5, "para2": name}}
        audit = self.call(201, "POST", "/v1/audits", {"audit_type": "ONESHOT", "force": True, **strategy})["uuid"]
        # A plan is visible when the audit has ended.
        plans = self.wait_until(
            lambda: self.call(200, "GET", f"/v1/action_plans?audit_uuid={audit}")["action_plans"],
            f"audit {audit} proposed no plan",
        )
        plan = plans[0]["uuid"]
        actions = self.call(200, "GET", f"/v1/actions?action_plan_uuid={plan}")["actions"]
        skipped = next(one["uuid"] for one in actions if one["action_type"] == "nop")
        self.call(200, "PATCH", f"/v1/actions/{skipped}", change_of_state("SKIPPED"))
        self.skipped.add(skipped)
        self.started.add(plan)
        self.call(200, "PATCH", f"/v1/action_plans/{plan}", change_of_state("PENDING"))

    def operate_cluster(self, name: str) -> None:
        """Create a cluster of one server, add another one, and delete it with both."""
        body = {"name": name, "profile": "web", "desired_capacity": 1}
        self.complete_operation(name, 1, "POST", "/v1/clusters", body)
        self.complete_operation(name, 2, "POST", f"/v1/clusters/{name}/scale_out", {"count": 1})
        self.complete_operation(name, 0, "DELETE", f"/v1/clusters/{name}?force=true")

    def complete_operation(self, name: str, capacity: int, *request: Any) -> None:
        """Request the operation of a cluster, and wait for the end of its plan."""
        plan = self.call(202, *request)["action_plan"]
        self.started.add(plan)
        self.capacities[name] = capacity
        self.wait_until(
            lambda: self.call(200, "GET", f"/v1/action_plans/{plan}")["state"] == "SUCCEEDED",
            f"{name}: plan {plan} has not SUCCEEDED",
        )

    def change_exclusions(self, name: str) -> None:
        self.call(201, "POST", "/v1/exclusions", {"name": name, "action_types": ["resize"]})
        self.call(200, "GET", f"/v1/exclusions/{name}")
        self.call(204, "DELETE", f"/v1/exclusions/{name}")
        self.stopping.wait(0.5)
