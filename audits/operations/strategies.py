"""The lookup of goals and strategies, and the parameters and requirements of strategies.

Clients of Watcher's API match the messages of the refusals.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from jsonschema import Draft4Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend, validator_for

from audits import messages
from audits.models import Goal, Strategy
from audits.strategies.base import Strategy as StrategyPlugin
from cluster.datasources.base import DatasourceError, datasource
from cluster.models import ComputeNode, StorageNode
from watcher_site.database.text import require_storable
from watcher_site.plugins import load
from watcher_site.refusals import Invalid, NotFound
from watcher_site.validation import describe_violation

NO_DATASOURCE = "Datasource is not presented for this strategy"
AVAILABLE, NOT_AVAILABLE = "available", "not available"


def find_goal(identifier: str) -> Goal:
    """Return a goal by id, UUID or name. Raises: `NotFound`."""
    goal = Goal.objects.present().named(str(identifier)).first()
    if goal is None:
        raise NotFound(messages.GOAL_NOT_FOUND.fill(name=identifier))
    return goal


def find_strategy(identifier: str, goal: Goal) -> Strategy:
    """Return a strategy that pursues this goal.

    Raises:
        NotFound: the strategy does not exist.
        Invalid: it pursues another goal; the message lists the strategies of this one.
    """
    strategy = Strategy.objects.present().named(str(identifier)).select_related("goal").first()
    if strategy is None:
        raise NotFound(messages.STRATEGY_NOT_FOUND.fill(name=identifier))
    if strategy.goal_id != goal.pk:
        choices = Strategy.objects.present().filter(goal=goal).order_by("name").values_list("uuid", "name")
        listed = ", ".join(f"'{uuid}' ({name})" for uuid, name in choices)
        raise Invalid(messages.STRATEGY_OF_OTHER_GOAL.fill(strategy=strategy.name, goal=goal.name, choices=listed))
    return strategy


def complete_strategy_parameters(
    strategy: Any, parameters: Mapping[str, Any], field: str = "parameters", *, is_repeated: bool = False
) -> dict[str, Any]:
    """Return the parameters of a strategy, given as its row, with defaults, checked by its plug-in if installed.

    Args:
        is_repeated: whether the parameters may be used more than once.

    Raises:
        Invalid: as `complete_parameters`, or as `Strategy.check` of the plug-in.
    """
    completed = complete_parameters(strategy.parameters_spec, parameters, field)
    plugin = load("STRATEGIES").get(strategy.name)
    # If the row is from another release than the installed plug-in, its parameters may differ.
    if plugin and plugin.schema == strategy.parameters_spec:
        try:
            plugin().check(completed)
            if is_repeated:
                plugin().check_repeated(completed)
        except Invalid as problem:
            raise Invalid(messages.PARAMETERS_INVALID.fill(field=field, problem=problem)) from problem
    return completed


def complete_parameters(
    schema: Mapping[str, Any], parameters: Mapping[str, Any], field: str = "parameters"
) -> dict[str, Any]:
    """Return the parameters with the defaults of the schema, at every depth.

    Args:
        field: the name of the parameters in a refusal.

    Raises:
        Invalid: the parameters violate the schema, or contain an unknown parameter.
    """
    require_storable(field, dict(parameters))
    completed = deepcopy(dict(parameters))
    problem = fill_defaults(schema, completed)
    if problem:
        raise Invalid(messages.PARAMETERS_INVALID.fill(field=field, problem=describe_violation(problem)))
    if unknown := [name for name in parameters if name not in schema.get("properties", {})]:
        raise Invalid(messages.PARAMETERS_UNKNOWN.fill(names=", ".join(unknown)))
    return completed


def fill_defaults(schema: Mapping[str, Any], parameters: dict[str, Any]) -> ValidationError | None:
    """Add the defaults to the parameters, and return the first violation of the schema, or None."""
    standard = validator_for(schema, default=Draft4Validator)
    validator = extend(standard, {"properties": defaults_validator(standard.VALIDATORS["properties"])})
    return next(iter(validator(schema).iter_errors(parameters)), None)


def defaults_validator(check_properties: Any) -> Any:
    """Return a validator for ``properties`` that adds defaults before it validates."""

    def fill_and_check(validator: Any, properties: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, dict):
            for name, rule in properties.items():
                if "default" in rule:
                    instance.setdefault(name, deepcopy(rule["default"]))
        yield from check_properties(validator, properties, instance, schema)

    return fill_and_check


def requirements(strategy: str) -> list[dict[str, Any]]:
    """Return the four entries that clients print: data source, metrics, cluster data models and name."""
    installed: Mapping[str, type[StrategyPlugin]] = load("STRATEGIES")
    required = installed[strategy].metrics if strategy in installed else ()
    state, metrics = describe_metrics(required) if required else (NO_DATASOURCE, [])
    return [
        {"type": "Datasource", "state": state, "mandatory": True, "comment": ""},
        {"type": "Metrics", "state": metrics, "mandatory": False, "comment": ""},
        {"type": "CDM", "state": describe_models(), "mandatory": True, "comment": ""},
        {"type": "Name", "state": strategy, "mandatory": "", "comment": ""},
    ]


def describe_metrics(required: tuple[str, ...]) -> tuple[str, list[dict[str, str]]]:
    """Return the availability of the data source, and of each metric."""
    source = datasource()
    try:
        available = source.find_metrics()
    except DatasourceError:
        return f"{source.name}: {NOT_AVAILABLE}", [{metric: NOT_AVAILABLE} for metric in required]
    return f"{source.name}: {AVAILABLE}", [
        {metric: AVAILABLE if metric in available else NOT_AVAILABLE} for metric in required
    ]


def describe_models() -> list[dict[str, str]]:
    """Return the availability of the models. Power states of bare metal are part of the compute model."""
    return [
        {"compute_model": availability(ComputeNode)},
        {"storage_model": availability(StorageNode)},
        {"baremetal_model": NOT_AVAILABLE},
    ]


def availability(model: type[ComputeNode | StorageNode]) -> str:
    return AVAILABLE if model.objects.present().exists() else NOT_AVAILABLE
