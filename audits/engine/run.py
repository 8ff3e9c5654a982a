"""The run of an audit: cluster snapshot, measurements, strategy, solution, action plan."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from actions.models import Action
from actions.types.base import explain
from audits import messages
from audits.demonstration_cloud import make_current
from audits.engine.scope import apply_scope
from audits.goals import GOALS
from audits.messages import ACTION_REPLACED, ACTION_SUPERSEDED, PLAN_IS_ONGOING, PLAN_REPLACED, PLAN_SUPERSEDED
from audits.models import Audit, is_continuous
from audits.models import Strategy as StrategyRow
from audits.notifications import PLANNER_PHASE, STRATEGY_PHASE, announce_event, phase_notifications
from audits.operations.strategies import complete_parameters
from audits.planner import PLANNERS
from audits.strategies.base import CLUSTERS, COMPUTE, HEALTH, STORAGE, Solution, Strategy
from cluster.datasources.base import DatasourceError, Reading, datasource
from cluster.drivers.base import CloudError
from cluster.operations.synchronization import synchronize
from cluster.snapshot import ClusterSnapshot
from cluster.snapshot.cloud import NodeClusterSnapshot, load_clusters
from cluster.snapshot.health import load_health
from plans.models import ActionPlan, EfficacyIndicator
from plans.planning.proposals import carry_skips, propose
from watcher_site.monitoring.tracing import tracing
from watcher_site.outbox.kinds import Event
from watcher_site.plugins import load
from watcher_site.refusals import Invalid
from watcher_site.request_context import CallingContext
from watcher_site.state_machine import ConcurrentTransition

log = structlog.get_logger(__name__)
# The message that clients match for a cluster without compute nodes, and a similar one for storage.
UNDEFINED = {
    COMPUTE: messages.NO_COMPUTE_NODES.text,
    STORAGE: messages.NO_STORAGE_NODES.text,
}
Measurements = Mapping[str, Mapping[str, float]]


def run_strategy(audit: Audit) -> None:
    """Run the strategy of an ONGOING audit, and write its plan and the result of the run in one transaction.

    Without `force`, it does not run while an action plan is ONGOING, because the cloud would change meanwhile.

    Raises:
        Refused: the audit cannot run; the message states the reason for its creator.
        ConcurrentTransition: it was cancelled or taken over meanwhile. No rows were written.
    """
    ongoing = None if audit.force else ActionPlan.objects.present().changing_cloud().first()
    if ongoing:
        skip_run(audit, PLAN_IS_ONGOING.fill(uuid=ongoing.uuid))
        return
    strategy = choose_strategy(audit)
    parameters = complete_parameters(strategy.schema, audit.parameters)
    strategy.check(parameters)
    with phase_notifications(audit, STRATEGY_PHASE):
        cluster = load_cluster(audit, strategy.models(parameters))
        cluster.measurements = measure(strategy.readings(parameters), cluster)
        solution = strategy.solve(cluster, parameters)
    with phase_notifications(audit, PLANNER_PHASE, ends=False):
        plan = conclude(audit, strategy, parameters, solution)
    log.info("audit completed", action_plan=str(plan.uuid), state=plan.state)


def load_cluster(audit: Audit, models: Sequence[str]) -> ClusterSnapshot:
    """Return the cluster within the scope of an audit, or an empty one if the strategy reads no models.

    Raises:
        Invalid: the cloud cannot be read, or one of the models is empty, in the cloud or within the scope.
    """
    if not models:
        return ClusterSnapshot()
    try:
        synchronize(settings.SYNC_MAX_AGE)
    except CloudError as problem:
        raise Invalid(messages.CLOUD_NOT_READ.fill(reason=explain(problem))) from problem
    cluster = ClusterSnapshot.load()
    needed = [model for model in models if model in UNDEFINED]
    for model in needed:
        if not model_nodes(cluster, model):
            raise Invalid(UNDEFINED[model])
    cluster = apply_scope(cluster, audit.scope)
    for model in needed:
        if not model_nodes(cluster, model):
            raise Invalid(messages.NO_NODE_IN_SCOPE.fill(model=model))
    if CLUSTERS in models:
        cluster.clusters = load_clusters()
        mark_occupied(cluster.clusters)
    if HEALTH in models:
        cluster.health = load_health(find_occupied())
    return cluster


def model_nodes(cluster: ClusterSnapshot, model: str) -> Mapping[str, Any]:
    return cluster.storage.nodes if model == STORAGE else cluster.nodes


def find_occupied() -> frozenset[str]:
    """Return the targets of unfinished actions of started plans, with one query."""
    begun = ActionPlan.objects.present().filter(state__in=[ActionPlan.State.PENDING, *ActionPlan.RUNNING])
    unfinished = Action.objects.unfinished().filter(action_plan__in=begun).order_by()
    return frozenset(unfinished.exclude(target=None).values_list("target", flat=True))


def mark_occupied(clusters: Iterable[NodeClusterSnapshot]) -> None:
    """Set for each cluster whether an operation on it or on one of its members is under way, with one query."""
    occupied = find_occupied()
    for cluster in clusters:
        uuids = [cluster.uuid, *(member.uuid for member in cluster.members)]
        cluster.is_occupied = any(str(uuid) in occupied for uuid in uuids)


def measure(readings: Mapping[str, Reading], cluster: ClusterSnapshot) -> Measurements:
    """Query the data source, with one request for each metric and aggregation.

    If the cloud is the demonstration, its samples are updated before.

    Raises:
        DatasourceError: the data source is unavailable, or has no samples for a required reading.
    """
    if not readings:
        return {}
    make_current()
    source = datasource()
    measurements = {name: source.read(reading) for name, reading in readings.items()}
    for name, reading in readings.items():
        resources = resources_of(reading.metric, cluster)
        if reading.required and resources and resources.isdisjoint(measurements[name]):
            raise DatasourceError(
                messages.NO_SAMPLES.fill(
                    source=source.name, metric=reading.metric, seconds=f"{reading.period + reading.ago:g}"
                )
            )
    return measurements


def resources_of(metric: str, cluster: ClusterSnapshot) -> set[str]:
    """Return the names of the compute nodes or servers of a metric in the data source."""
    if metric.startswith("host_"):
        return {name for node in cluster.nodes.values() for name in (str(node.uuid), node.hostname)}
    return {str(server.uuid) for server in cluster.servers}


def choose_strategy(audit: Audit) -> Strategy:
    """Return the strategy of an audit, by default the first one of its goal."""
    installed: Mapping[str, type[Strategy]] = load("STRATEGIES")
    if audit.strategy:
        if audit.strategy.name not in installed:
            raise Invalid(messages.STRATEGY_NOT_INSTALLED.fill(name=audit.strategy.name))
        return installed[audit.strategy.name]()
    for strategy in installed.values():
        if strategy.goal == audit.goal.name:
            return strategy()
    raise Invalid(messages.NO_STRATEGY_FOR_GOAL.fill(name=audit.goal.name))


def lock_run(audit: Audit) -> Audit:
    """Return the current row of an audit, locked until the transaction ends. Users may have changed it.

    Raises:
        ConcurrentTransition: this decision engine no longer owns the run.
    """
    rows = Audit.objects.running_under(audit.decision_engine).filter(pk=audit.pk)
    row: Audit | None = rows.select_for_update(no_key=True).first()
    if row is None:
        raise ConcurrentTransition(f"The run of audit {audit.uuid} was cancelled, suspended or taken over.")
    return row


@transaction.atomic
def skip_run(audit: Audit, obstacle: str) -> None:
    row = lock_run(audit)
    row.skip_run(timezone.now(), obstacle)
    row.save_state()
    log.info("audit not run", reason=row.status_message, state=row.state)


@transaction.atomic
def fail(audit: Audit, reason: str) -> None:
    """Store the reason why a run failed.

    Raises:
        ConcurrentTransition: it was cancelled or taken over meanwhile. No rows were written.
    """
    row = lock_run(audit)
    row.fail_run(timezone.now(), reason)
    row.save_state()


@transaction.atomic
def conclude(audit: Audit, strategy: Strategy, parameters: Mapping[str, Any], solution: Solution) -> ActionPlan:
    """Write the plan of a solution and end the run of its audit, in one transaction."""
    goal = GOALS[strategy.goal]
    goal.check(solution.indicators)
    actions = PLANNERS[strategy.planner](solution.actions)
    # The lock serializes the plans of a strategy, so that a later plan supersedes an earlier one.
    row = StrategyRow.objects.present().filter(name=strategy.name).select_for_update(no_key=True).first()
    # The guard: a cancellation that was committed before ends the run, and a later one waits for its end.
    audit_row = lock_run(audit)
    plan = propose(
        actions,
        audit_id=audit.pk,
        strategy_id=row and row.pk,
        indicators=[
            EfficacyIndicator(
                name=indicator.name,
                description=indicator.description,
                unit=indicator.unit,
                value=solution.indicators[indicator.name],
            )
            for indicator in goal.indicators
            if indicator.name in solution.indicators
        ],
        global_efficacy=goal.global_efficacy(solution.indicators),
    )
    announce_event(audit_row, Event(f"{PLANNER_PHASE}.end"))
    audit_row.end_run(timezone.now())
    audit_row.save_state()
    end_older_plans(plan, audit, strategy, parameters)
    if audit.auto_trigger and actions:
        caller = CallingContext(audit=str(audit.uuid), request_id=audit.request_id, **tracing.context())
        plan.launch(caller, needs_approval=False)
    return plan


def end_older_plans(plan: ActionPlan, audit: Audit, strategy: Strategy, parameters: Mapping[str, Any]) -> None:
    """End the recommended plans that a new plan replaces.

    Plans of earlier runs of a CONTINUOUS audit are CANCELLED. Plans of audits with the same goal, strategy, scope and
    distinguishing parameters are SUPERSEDED. Actions that users skipped in the previous plan of a CONTINUOUS audit are
    skipped in the new one.
    """
    same = {f"audit__parameters__{name}": parameters[name] for name in strategy.distinguished_by if name in parameters}
    similar = Q(strategy=plan.strategy_id, audit__goal=audit.goal_id, audit__scope=audit.scope, **same)
    replaced = ActionPlan.objects.filter(Q(audit=audit) | similar, pk__lt=plan.pk)
    # All rows are locked in order before any is changed, to avoid deadlocks.
    older = ActionPlan.objects.filter(pk__in=replaced.lock_in_order(ActionPlan.sources("supersede")))
    cancelled = 0
    if is_continuous(audit):
        carry_skips(plan, older.filter(audit=audit).values_list("pk", flat=True))
        cancelled = older.filter(audit=audit).cancel_recommended(
            PLAN_REPLACED.fill(uuid=plan.uuid), ACTION_REPLACED.fill(uuid=plan.uuid)
        )
    superseded = older.supersede(
        PLAN_SUPERSEDED.fill(uuid=plan.uuid),
        ACTION_SUPERSEDED.fill(uuid=plan.uuid),
    )
    if cancelled or superseded:
        log.info("older plans ended", action_plan=str(plan.uuid), cancelled=cancelled, superseded=superseded)
