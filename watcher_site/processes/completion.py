"""Shell completion of commands, options, and objects in the database, by argcomplete."""

import os
from argparse import ArgumentParser
from typing import Any, cast

import argcomplete
from django.core.management import get_commands, load_command_class

# Values are not completed with file names.
NO_COMPLETER = argcomplete.SuppressCompleter()


def is_completing() -> bool:
    """Return whether a shell calls this process to complete a command line."""
    return "_ARGCOMPLETE" in os.environ


def complete(program: str) -> None:
    """Print the completions of the command line in the environment, and exit."""
    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 0)]
    parser = make_parser(program, set(line.split()))
    argcomplete.autocomplete(parser, always_complete_options=False, default_completer=NO_COMPLETER)


def make_parser(program: str, words: set[str]) -> ArgumentParser:
    """Return a parser of all commands. Only the commands in the line are loaded, which saves time."""
    commands = get_commands()

    def make_command_parser(command: str = "", **options: Any) -> Any:
        if command not in words:
            return ArgumentParser(add_help=False)
        app = commands[command]
        loaded = load_command_class(app, command) if isinstance(app, str) else app
        return loaded.create_parser(program, command)

    parser = ArgumentParser(program, add_help=False)
    # A function instead of a class, because Django creates the parsers of commands.
    added = parser.add_subparsers(parser_class=cast("Any", make_command_parser))
    for name in sorted(commands):
        added.add_parser(name, command=name)
    return parser
