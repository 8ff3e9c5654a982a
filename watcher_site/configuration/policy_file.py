"""Parsing of policy files: rules of oslo.policy by the names of policies, in YAML or JSON."""

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from watcher_site.configuration.environment import read_path, refuse


class PolicyFault(Exception):
    """An error in a policy file. The message begins with the line number, if there is one."""


def load_rules(path: str) -> dict[str, Any]:
    """Return the rules of a policy file by name, parsed by oslo.policy.

    Raises:
        PolicyFault: the file cannot be read, is not a table of rules, or has a rule that cannot be parsed.
    """
    # Its import takes a third of a second, which a site without a policy file avoids.
    from oslo_policy.policy import Rules

    try:
        root = yaml.compose(Path(path).read_text(), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as problem:
        raise PolicyFault(f"line {line_of(problem.problem_mark)}: {problem.problem}.") from problem
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise PolicyFault(f"it cannot be read: {problem}") from problem
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise PolicyFault(f"line {line_of(root.start_mark)}: it must be a table of rules by name.")
    rules: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key, value in root.value:
        line = line_of(key.start_mark)
        if not isinstance(key, yaml.ScalarNode) or not is_text(value):
            raise PolicyFault(f"line {line}: a rule must be a text, or a list of texts, with a text for its name.")
        rules[key.value], lines[key.value] = as_value(value), line
    parsed = dict(Rules.from_dict(rules))
    for name, rule in rules.items():
        require_rule(name, rule, parsed, lines[name])
    return parsed


def line_of(mark: Any) -> int:
    return 1 if mark is None else int(mark.line) + 1


def is_text(node: Any) -> bool:
    if isinstance(node, yaml.SequenceNode):
        return all(is_text(one) for one in node.value)
    return isinstance(node, yaml.ScalarNode)


def as_value(node: Any) -> Any:
    return [as_value(one) for one in node.value] if isinstance(node, yaml.SequenceNode) else node.value


def require_rule(name: str, rule: Any, parsed: dict[str, Any], line: int) -> None:
    """Raise `PolicyFault` for a rule that oslo.policy could not parse, or that refers to a missing rule.

    oslo.policy replaces a rule that it cannot parse by a check that always fails, whose text is "!".
    """
    checks = [*list_checks(parsed[name])]
    if isinstance(rule, str) and sum(str(one) == "!" for one in checks) > rule.count("!"):
        raise PolicyFault(f"line {line}: the rule {name} cannot be parsed.")
    for check in checks:
        if getattr(check, "kind", "") == "rule" and check.match not in parsed:
            raise PolicyFault(f"line {line}: the rule {name} refers to the rule {check.match}, which is not there.")
    if name in reachable(name, parsed):
        raise PolicyFault(f"line {line}: the rule {name} refers to itself.")


def find_ineffective(rules: dict[str, Any], policies: Collection[str], permissions: Collection[str]) -> list[str]:
    """Return a message for each rule without effect, and for each unknown permission in a rule.

    Args:
        policies: the names of all policies.
        permissions: the names of all permissions.
    """
    checks = [(name, check) for name, rule in rules.items() for check in list_checks(rule)]
    named = {check.match for _, check in checks if getattr(check, "kind", "") == "rule"}
    strays = [
        f"{name} is not a policy, and no rule refers to it." for name in rules if name not in {*policies, *named}
    ]
    required = {(name, check.match) for name, check in checks if getattr(check, "kind", "") == "right"}
    unknown = sorted((name, right) for name, right in required if "." in right and right not in permissions)
    return strays + [f"{name}: there is no permission {right}." for name, right in unknown]


def list_checks(check: Any) -> list[Any]:
    """Return a check and all checks that it contains."""
    parts = getattr(check, "rules", None) or [part for part in [getattr(check, "rule", None)] if part is not None]
    return [check, *(one for part in parts for one in list_checks(part))]


def reachable(name: str, parsed: dict[str, Any]) -> set[str]:
    """Return the names of the rules that a rule refers to, directly or indirectly."""
    found: set[str] = set()
    pending = [name]
    while pending:
        check = parsed.get(pending.pop())
        named = {one.match for one in list_checks(check) if getattr(one, "kind", "") == "rule"}
        pending += named - found
        found |= named
    return found


def read_policy_file(name: str, has_package: bool) -> str:
    """Read the path of a policy file, and refuse to start if the file has an error."""
    path = read_path(name)
    if path and not has_package:
        refuse(name, "needs the package oslo.policy, which the extra [openstack] brings.")
    logging.getLogger("oslo_policy").setLevel(logging.CRITICAL)  # LOGGING sets it permanently.
    try:
        if path:
            load_rules(path)
    except PolicyFault as problem:
        refuse(name, f"{path}: {problem}")
    return path
