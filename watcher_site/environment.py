"""Reads the environment for the settings: every variable has a type and a range, and a wrong one stops the start."""

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environs import EnvError, FileAwareEnv

# Any variable may be read from a file instead, whose path is in the variable with _FILE behind its name.
env = FileAwareEnv(strip_whitespace=True)


def refuse(name: str, rule: str) -> NoReturn:
    """Stop the start with one line: `ImproperlyConfigured`, which manage.py and gunicorn print without a traceback."""
    raise ImproperlyConfigured(" ".join(f"{name}: {rule}".split()))


def read(reader: Callable[..., Any], name: str, default: Any, **options: Any) -> Any:
    """Return a variable, or refuse to start, naming it and the rule it broke."""
    try:
        return reader(name, default, **options)
    except EnvError as problem:
        refuse(name, re.sub(r'^Environment variable "\w+" invalid: ', "", str(problem)))
    except ValueError as problem:
        refuse(name, str(problem))


def read_number(name: str, default: float, *, least: float, most: float = 1e9) -> float:
    number = read(env.float, name, default)
    if not least <= number <= most:
        refuse(name, f"must be a number from {least:g} to {most:g}, and is {number:g}.")
    return number


def read_whole(name: str, default: int, *, least: int, most: int = 10**9) -> int:
    number = read_number(name, default, least=least, most=most)
    if number != int(number):
        refuse(name, f"must be a whole number, and is {number:g}.")
    return int(number)


def read_list(name: str, default: Sequence[str] = ()) -> list[str]:
    return [item.strip() for item in read(env.list, name, list(default)) if item.strip()]


def read_path(name: str) -> str:
    """Read the path of a file that must be there, or nothing."""
    path: str = read(env.str, name, "")
    if path and not Path(path).is_file():
        refuse(name, f"must be the path of a file, and there is none at {path}.")
    return path


def is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def read_choice(name: str, default: str, choices: Collection[str]) -> str:
    choice = read(env.str, name, default)
    if choice not in choices:
        refuse(name, f"must be one of {', '.join(choices)}, and is {choice}.")
    return choice


def read_numbers(name: str, default: dict[str, int]) -> dict[str, int]:
    """Read a table of natural numbers, written like nop=70,migrate=30."""
    numbers = read(env.dict, name, default, subcast_values=int)
    if any(number < 1 for number in numbers.values()):
        refuse(name, "must hold numbers of at least 1.")
    return numbers
