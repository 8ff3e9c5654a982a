"""The commands, options, addresses and variables of the documentation exist.

`tests/end_to_end/test_documented_commands.py` runs the examples against a site.
"""

import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, CommandParser, get_commands, load_command_class
from django.test import Client

from tests.documentation.blocks import PAGES, all_blocks
from tests.processes import ROOT
from tests.repository.test_documentation import settings_variables

PROGRAMS = {"manage.py", "watcher-site"}
# The words after which a program may be named: those of docker compose exec and kubectl exec.
LAUNCHERS = {"python", "web", "--"}
INLINE_COMMAND = re.compile(r"`(?:\S*python\s+)?(?:manage\.py|watcher-site)\s+([a-z_]+)\s*([^`]*)`")
INLINE_REQUEST = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^\s`]+)`")
OPTION = re.compile(r"(?<!\S)\[?(--[a-z][a-z-]*)")
ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=")
SITE = "http://127.0.0.1:8000"
# A name in capitals, also as a variable of the shell, stands for the object of the reader.
PLACEHOLDER = re.compile(r"\$?\b[A-Z][A-Z_]+\b")
SOME_UUID = "7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11"


def shell_text(page: str) -> str:
    """Return the text of all shell blocks of a page."""
    return "".join(block.text for block in all_blocks(page) if block.language == "sh")


def shell_commands(text: str) -> Iterator[list[str]]:
    """Return the words of each command of the text of shell blocks, without comments."""
    command = ""
    for line in text.splitlines():
        command += line.removesuffix("\\")
        if not line.endswith("\\") and (words := split(command)) is not None:
            command = ""
            if words:
                yield words
        elif not line.endswith("\\"):
            command += "\n"


def split(command: str) -> list[str] | None:
    """Return the words of a command, or None if a quotation continues on the next line."""
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return None


def management_commands(text: str) -> Iterator[list[str]]:
    """Return the name and the arguments of each management command of the text of shell blocks."""
    for words in shell_commands(text):
        for index, word in enumerate(words):
            launcher = Path(words[index - 1]).name if index else "--"
            if Path(word).name in PROGRAMS and launcher in LAUNCHERS:
                arguments = [PLACEHOLDER.sub(SOME_UUID, argument) for argument in words[index + 1 :]]
                yield arguments[: arguments.index(">")] if ">" in arguments else arguments


def assigned_words(command: list[str]) -> list[str]:
    """Return the assignments of environment variables of a command, alone or with ``export``."""
    words = command[1:] if command[0] == "export" else command[:1]
    return [word for word in words if ASSIGNMENT.match(word)]


def parser_of(name: str) -> CommandParser:
    app = get_commands()[name]
    command = load_command_class(app, name) if isinstance(app, str) else app
    return command.create_parser("manage.py", name)


def parsing_error(name: str, arguments: list[str]) -> str:
    """Return the message with which the parser of a command refuses arguments, or an empty text."""
    refusal = StringIO()
    try:
        with redirect_stderr(refusal):
            parser_of(name).parse_args(arguments)
    except (CommandError, SystemExit) as problem:
        return f"{name} {arguments}: {refusal.getvalue() or problem}"
    return ""


def requests_of(page: str) -> Iterator[tuple[str, str, str]]:
    """Return the method, path and API version of each request to the site in a page."""
    for words in shell_commands(shell_text(page)):
        for address in words:
            if words[0] == "curl" and address.startswith(SITE):
                yield curl_method(words), urlsplit(address).path, curl_version(words)
    for method, path in INLINE_REQUEST.findall((ROOT / page).read_text()):
        yield method, urlsplit(path).path, "infra-optim latest"


def curl_method(words: list[str]) -> str:
    if "-X" in words:
        return words[words.index("-X") + 1]
    return "POST" if "-d" in words else "GET"


def curl_version(words: list[str]) -> str:
    headers = dict(word.split(": ", 1) for option, word in pairwise(words) if option == "-H")
    return headers.get("OpenStack-API-Version", "infra-optim 1.7")


def refused_methods(page: str) -> list[str]:
    """Return the requests of a page whose path does not exist, or does not take their method."""
    client = Client()
    refused = []
    for method, path, version in requests_of(page):
        concrete = PLACEHOLDER.sub(SOME_UUID, path)
        response = client.options(concrete, headers={"OpenStack-API-Version": version})
        if method not in response.headers.get("Allow", ""):
            refused.append(f"{method} {path}: {response.status_code} {response.headers.get('Allow', '')}")
    return refused


@pytest.mark.parametrize("page", PAGES)
def test_documented_management_commands_are_accepted_by_their_parsers(page: str) -> None:
    commands = list(management_commands(shell_text(page)))
    assert [problem for name, *arguments in commands if (problem := parsing_error(name, arguments))] == []


@pytest.mark.parametrize("page", PAGES)
def test_documented_options_of_commands_exist(page: str) -> None:
    missing = [
        f"{name} {option}"
        for name, arguments in INLINE_COMMAND.findall((ROOT / page).read_text())
        for option in OPTION.findall(arguments)
        if option not in parser_of(name).format_help()
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_documented_requests_have_an_existing_path_and_method(page: str) -> None:
    assert refused_methods(page) == []


@pytest.mark.parametrize("page", PAGES)
def test_variables_in_documented_shell_blocks_are_settings(page: str) -> None:
    words = (word for command in shell_commands(shell_text(page)) for word in assigned_words(command))
    named = {word.partition("=")[0] for word in words}
    known = {name + ending for name in settings_variables() for ending in ("", "_FILE")}
    assert {name for name in named if not name.startswith("OS_")} - known == set()
