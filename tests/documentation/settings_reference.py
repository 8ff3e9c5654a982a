"""The environment variables as the settings read them, for the tables of docs/configuration.md.

``python -m tests.documentation.settings_reference`` writes the column of the accepted values of each table.
"""

import json
import os
import re
from functools import cache
from typing import Any

from tests.processes import ROOT, Process
from tests.waiting import PATIENCE
from tests.watcher_site.site_process import KEY

PAGE = ROOT / "docs" / "configuration.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (.*?) ?\| (.*?) ?\| (.*) \|$", re.MULTILINE)
# The upper limit of numbers for which the settings name none.
UNLIMITED = 10**9
KINDS = {"bool": "`true`, `false`", "int": "integer", "float": "number", "list": "list", "dict": "pairs"}
# Print the reader, the default and the limits with which the settings read each variable.
RECORD = """
import json
from watcher_site.configuration import environment
calls, read = {}, environment.read
def record(reader, name, default, **options):
    limits = getattr(options.get("validate"), "__dict__", {})
    found = {key: limits[key] for key in ("min", "max", "choices") if key in limits}
    calls.setdefault(name, {"kind": reader.__name__, "default": default, **found})
    return read(reader, name, default, **options)
environment.read = record
import watcher_site.settings
print(json.dumps(calls))
"""


@cache
def read_variables(**variables: str) -> dict[str, dict[str, Any]]:
    """Return the arguments with which the settings read each variable, if only these and the secret key are set."""
    environment = {"PATH": os.environ["PATH"], "SECRET_KEY": KEY, "WATCHER_TRACING": "true", **variables}
    output, errors = Process("-c", RECORD, env=environment).communicate(PATIENCE)
    assert not errors, errors
    found: dict[str, dict[str, Any]] = json.loads(output)
    return found


def all_variables() -> dict[str, dict[str, Any]]:
    """Return those of all variables, with the defaults of a site on which only the secret key is set."""
    return read_variables(DATABASE_URL="postgres://watcher@db.example.org/watcher") | read_variables()


def read_units() -> dict[str, str]:
    """Return the unit of each variable that the settings read as a period of hours or days."""
    source = (ROOT / "watcher_site" / "settings.py").read_text()
    periods = re.findall(r'timedelta\((hours|days)=read_number\("([A-Z_]+)"', source)
    return {name: unit for unit, name in periods}


def describe_values(variable: dict[str, Any], unit: str = "") -> str:
    """Return the text of the column of accepted values. Texts whose form the settings do not declare have none."""
    if choices := variable.get("choices"):
        return ", ".join(f"`{choice}`" if choice else "empty" for choice in choices)
    text = KINDS.get(variable["kind"], "")
    if unit:
        text += f" of {unit}"
    if "min" in variable:
        text += f" from {variable['min']:.10g}"
    if variable.get("max", UNLIMITED) < UNLIMITED:
        text += f" to {variable['max']:.10g}"
    return text


def describe_default(value: Any) -> str:
    """Return a default as it would be written in an environment variable."""
    match value:
        case bool():
            return str(value).lower()
        case float() | int():
            return f"{value:.10g}"
        case list():
            return ",".join(value)
        case dict():
            return ",".join(f"{name}={item}" for name, item in value.items())
    return str(value)


def with_values(page: str) -> str:
    """Return the text of the page with the present values in its tables."""
    variables, units = all_variables(), read_units()

    def write(row: re.Match[str]) -> str:
        name, default, _, description = row.groups()
        values = describe_values(variables[name], units.get(name, ""))
        return f"| `{name}` | {default} | {values} | {description} |".replace("|  |", "| |")

    return ROW.sub(write, page)


if __name__ == "__main__":
    PAGE.write_text(with_values(PAGE.read_text()))
