"""The base class of actions on a root stack.

Such an action decides first, and stores the decision as its data. Then it writes the new properties to the rows of the
stack and its content. The actions on its resources change the cloud, and at the end the result is written to the
stack. After a crash, the next execution uses the stored decision.

A decision that was made with a plan becomes stale by another operation on the stack, and by marks that users set or
remove.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, ClassVar

from django.db import transaction

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.models.plan_states import RUNNING_PLAN, PlanState
from actions.types import messages
from actions.types.base import ActionFailed, ActionSkipException, Answer, CannotBeForeseen, Data, Outcome, Recovery
from actions.types.locking import require_known, require_unlocked, take_locks
from actions.types.nodes.nodes import schema_of
from actions.types.stacks.resources import settle_abandoned
from actions.types.stacks.status import end_with_success, fail_in_progress, write_part
from actions.types.stacks.steps import Stepping, propose_all
from cluster.models import Stack, StackResource, StackStatus
from cluster.models.stacks import IN_PROGRESS, Verb
from cluster.simulated import simulated_cloud
from cluster.stacks import decisions
from cluster.stacks.current import CurrentStack, read_tree
from cluster.stacks.decisions import Change, Decision, Kind, Template
from watcher_site.refusals import Conflict

DECISION, REVISION, MARKS, BEGUN = "decision", "revision", "marks", "begun"
"""The keys in an action's data: the decision, with the revision and the marks of the stack; whether it has begun."""
MARKED, WITHDRAWN = StackStatus.CHECK_FAILED, StackStatus.CHECK_COMPLETE


class StackAction(Stepping, ABC):
    """An action on one root stack, ``resource_id``. Its ``resource_name`` is for users."""

    schema = schema_of()
    takes_locks = True
    inherits_foresight = True
    verb: ClassVar[Verb]

    @abstractmethod
    def decide(self, stack: Stack, current: CurrentStack) -> Decision:
        """Return the decision for a stack in its current state."""

    def template(self, stack: Stack) -> Template:
        """Return the new template of the stack."""
        return stack.template

    def complete(self, stack: Stack) -> Outcome:
        """End the operation on the stack with success. May be called twice."""
        end_with_success(stack, self.left_out)
        return Outcome(Answer.OK)

    # Shared by all subclasses.

    @property
    def uuid(self) -> str:
        return str(self.input_parameters["resource_id"])

    def find(self, *, lock: bool = False) -> Stack | None:
        """Return the current row of the stack, optionally locked, or None if it was deleted, with one query."""
        if model := simulated_cloud():
            stack = model.stacks.find_stack(self.uuid)
            return stack if stack and stack.root_id is None else None
        stacks = Stack.objects.present().roots().filter(uuid=self.uuid)
        row: Stack | None = (stacks.select_for_update(no_key=True) if lock else stacks).first()
        return row

    def stack(self, *, lock: bool = False) -> Stack:
        """Return the stack, as `find`. Raises: `ActionFailed` if it was deleted."""
        stack = self.find(lock=lock)
        if stack is None:
            raise ActionFailed(self.not_found_message)
        return stack

    @property
    def not_found_message(self) -> str:
        return messages.STACK_NOT_FOUND.fill(stack=self.uuid)

    @classmethod
    def data_anew(cls, proposed: Data, kept: Data) -> Data:
        """Complete the decision if the action was planned for review and has begun; otherwise decide again."""
        if not (proposed and kept.get(BEGUN)):
            return proposed
        decision = Decision.read(kept[DECISION])
        # Marks of the stack itself, and of resources whose actions have ended, were processed.
        marks = {*kept[MARKS], *decision.marked}.intersection(ending_generations(decision.changes))
        # Resources that were replaced because of a mark of their stack must not be marked again.
        return {REVISION: kept[REVISION], MARKS: sorted(marks), DECISION: {**kept[DECISION], "marked": []}}

    def pre_condition(self) -> None:
        if self.find() is None and not self.context.data.get(BEGUN):
            raise ActionSkipException(self.not_found_message)

    def require_current(self) -> None:
        stack, data = self.find(lock=True), self.context.data
        if stack is None or REVISION not in data or data.get(BEGUN):
            return
        require_current_stack(stack, self.context.action_uuid, data[REVISION])
        if changed := self.find_mark_change(stack):
            raise Conflict(messages.PLAN_OUTDATED.fill(name=stack.name, reason=changed))

    def find_mark_change(self, stack: Stack) -> str | None:
        """Return a sentence about a mark that was set or removed since the decision and matters for it, or None."""
        if self.verb == Verb.DELETE:
            return None
        data = self.context.data
        return find_mark_change(stack, Decision.read(data[DECISION]).changes, data[MARKS])

    def plan(self) -> Sequence[ProposedAction]:
        """Decide now, before a user starts the plan, and return all actions that will be derived.

        Actions without a ``derived_from`` are derived by this action. Only the context's data is written.

        Raises:
            ActionFailed: the stack was deleted.
        """
        return propose_all(self.decision(self.stack()).changes, self.context.timeout)

    def execute(self) -> Outcome:
        if conflict := take_locks(self.context.action_uuid, [(self.stack(), True)]):
            return conflict
        if not self.context.data.get(BEGUN):
            settle_abandoned(self.stack())
        decision = self.decision(self.stack())  # Before the lock, another action might have changed it.
        if not self.context.data.get(BEGUN):
            self.begin(decision)
        return self.go_on()

    def decision(self, stack: Stack) -> Decision:
        """Return the decision, from the data of an earlier run or made and saved now."""
        data = self.context.data
        if DECISION in data:
            return Decision.read(data[DECISION])
        model = simulated_cloud()
        current = model.stacks.stack(stack) if model else read_tree(stack)
        decision = self.decide(stack, current)
        self.context.save_data(
            {**data, DECISION: decision.as_data(), REVISION: stack.revision, MARKS: current.all_marked}
        )
        return decision

    def foresee(self) -> Outcome:
        """Decide and begin as `execute` would, on rows in memory. Raises: `ActionFailed`, `CannotBeForeseen`."""
        stack, model = self.stack(), simulated_cloud()
        if model is None:
            raise CannotBeForeseen(messages.WITHOUT_MODEL.text)
        require_known(model, stack)
        require_unlocked(model, self.context.action_uuid, [(stack, True)])
        if not self.context.data.get(BEGUN):
            if any(part.status in IN_PROGRESS for part in model.stacks.tree(stack)):
                raise CannotBeForeseen(messages.GIVEN_UP_BEFORE.text)
            self.write_beginning(self.decision(stack))
        model.members.changed.add(stack.uuid)
        return self.go_on()

    @transaction.atomic
    def begin(self, decision: Decision) -> None:
        """Write the beginning of the action. Raises: `ActionFailed` if the stack has changed since the decision."""
        self.write_beginning(decision)

    def write_beginning(self, decision: Decision) -> None:
        stack, data = self.stack(lock=True), self.context.data
        if stack.revision != data[REVISION]:
            raise ActionFailed(messages.STACK_CHANGED.text)
        if changed := self.find_mark_change(stack):
            raise ActionFailed(changed)
        stack.template = self.template(stack)
        stack.timeout_mins = self.input_parameters.get("timeout_mins", stack.timeout_mins)
        stack.revision += 1
        stack.begin(self.verb)
        if model := simulated_cloud():
            model.stacks.write(stack, decision)
        else:
            decisions.write_decision(stack, decision)
        write_part(stack)
        self.context.save_data({**data, BEGUN: True, REVISION: stack.revision})

    def go_on(self) -> Outcome:
        stack = self.find()
        if stack is None:
            return Outcome(Answer.OK)
        changes = Decision.read(self.context.data[DECISION]).changes
        return self.next_step([changes]) or self.complete(stack)

    def stop_with_failure(self, reason: str) -> Outcome:
        self.settle(reason)
        return Outcome(Answer.OK, reason)

    def settle(self, reason: str) -> None:
        """Set a stack to failed if it is still in progress, with the resources whose actions did not end."""
        stack = self.find()
        if stack is not None and self.context.data.get(BEGUN):
            if simulated_cloud() is None:
                settle_abandoned(stack)
            fail_in_progress(stack, reason)

    def be_given_up(self, reason: str) -> None:
        self.settle(reason)

    def post_condition(self) -> None:
        """Set a stack that is still in progress to failed, for example after too many retries."""
        self.settle(messages.NOT_COMPLETED.fill(operation=self.verb))

    def abort(self) -> bool:
        """Set the stack to failed. The derived actions have ended, and their results stay."""
        self.settle(messages.OPERATION_INTERRUPTED.fill(operation=self.verb))
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN if self.find() else Recovery.DONE


def require_current_stack(stack: Stack, action: str, revision: int) -> None:
    """Check that no other operation has changed a stack, or was started, since a plan for it was created.

    Args:
        stack: its row is locked, so that of two plans that start at once, the second finds the first.
        action: the UUID of the planned action.
        revision: the revision of the stack when the plan was created.

    Raises:
        Conflict: the message names the operation that came first.
    """
    further = Action.objects.present().filter(target=str(stack.uuid), derived_from=None).exclude(uuid=action)
    further = further.select_related("action_plan").order_by("pk")
    started = [PlanState.PENDING, *RUNNING_PLAN]
    if first := further.unfinished().filter(action_plan__state__in=started).first():
        raise Conflict(messages.STARTED_BEFORE.fill(name=stack.name, work=describe_operation(first)))
    if stack.revision == revision:
        return
    done = further.filter(data__begun=True, data__revision__gt=revision).order_by("data__revision", "pk").first()
    first = done or last_replacement(stack)
    operation = describe_operation(first) if first else messages.ANOTHER_OPERATION.text
    raise Conflict(messages.CHANGED_BY.fill(name=stack.name, work=operation))


def last_replacement(stack: Stack) -> Action | None:
    """Return the last requested action that replaced a resource of a stack, or None."""
    parts = StackResource.objects.tree(stack).values_list("uuid", flat=True)
    standalone = Action.objects.present().filter(action_type="replace_resource", derived_from=None)
    ended = standalone.filter(target__in=[str(uuid) for uuid in parts], end_time__isnull=False)
    replacement: Action | None = ended.select_related("action_plan").order_by("end_time").last()
    return replacement


def describe_operation(action: Action) -> str:
    values = {"uuid": action.uuid, "action": action.action_type, "plan": action.action_plan.uuid}
    return messages.OPERATION_OF_ACTION.fill(**values)


def find_mark_change(root: Stack, changes: Iterable[Change], known_marks: Iterable[str]) -> str | None:
    """Return a sentence about a mark that was set or removed after a decision, or None: two queries.

    If a resource has a later generation than the decision assumed, its mark is a new one.

    Args:
        root: its row is locked, which prevents concurrent changes of marks.
        changes: the decision.
        known_marks: the UUIDs of the stacks and resources that were marked at the time of the decision.
    """
    known_marks, ends = set(known_marks), ending_generations(changes)
    for part in find_marked(root):
        uuid = str(part.uuid)
        is_known = uuid in known_marks and getattr(part, "generation", 0) < ends.get(uuid, inf)
        if part.status == MARKED and not is_known:
            return messages.MARKED_SINCE.fill(name=part.name)
        if part.status == WITHDRAWN and is_known:
            return messages.MARK_WITHDRAWN.fill(name=part.name)
    return None


def find_marked(root: Stack) -> Iterable[Stack | StackResource]:
    """Return the stacks, then the resources, of a tree that are marked or whose mark was removed."""
    if model := simulated_cloud():
        marked = [part for part in model.stacks.tree(root) if part.status in {MARKED, WITHDRAWN}]
        return sorted(marked, key=lambda part: (isinstance(part, StackResource), part.pk))
    return [
        *order_marked(Stack.objects.present().tree(root)),
        *order_marked(StackResource.objects.present().tree(root)),
    ]


def order_marked(parts: Any) -> Iterable[Stack | StackResource]:
    marked: Iterable[Stack | StackResource] = parts.filter(status__in=[MARKED, WITHDRAWN]).order_by("pk")
    return marked


def ending_generations(changes: Iterable[Change]) -> Mapping[str, float]:
    """Return the generations that changes create by the UUID of the resource; infinity for a deletion."""
    generations: dict[str, float] = {}
    for change in changes:
        if change.kind is Kind.REPLACE:
            generations[change.uuid] = change.generation
        elif change.kind is Kind.DELETE:
            generations[change.uuid] = inf
        for step in [*change.steps, change.clearing]:
            generations.update(ending_generations(step))
    return generations
