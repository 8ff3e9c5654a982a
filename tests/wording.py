"""Check the wording of code and documentation against the glossary of docs/contributing.md.

``python -m tests.wording`` prints where an enforced rule is broken, and exits with 1 if any is. With ``--report`` it
prints how often each rule is broken in each folder, with ``--rule NAME`` the places where that one is broken.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ["watcher_site", "cluster", "actions", "plans", "audits", "templates", "tests", "docs"]
FILES = ["README.md", "Makefile", "Procfile", "pyproject.toml", ".ci/run"]
LICENSE = Path("templates/static/chart.js/LICENSE.md")
# A licence of others, the page that lists the rejected words, and this list of them.
EXEMPT = {Path("docs/contributing.md"), Path("tests/wording.py"), Path("tests/repository/test_wording.py"), LICENSE}

# Names of columns, of fields of the API, and of methods of plug-ins, which do not change.
KEPT_NAMES = {
    (Path("actions/types/base.py"), "data anew"),
    (Path("actions/types/clusters/clusters.py"), "data anew"),
    (Path("actions/types/stacks/stacks.py"), "data anew"),
    (Path("watcher_site/models/history.py"), "deed"),
    (Path("watcher_site/models/services.py"), "told status"),
    (Path("watcher_site/api/resources/history.py"), "deed"),
    (Path("watcher_site/console/history.py"), "deed"),
    (Path("watcher_site/console/history.py"), "render deed"),
}

# Texts that the API returns at microversions whose answers do not change: descriptions of indicators.
KEPT_TEXTS = {(Path("audits/goals.py"), "room")}

# Quoted code: blocks and spans of Markdown and reStructuredText.
CODE = r"^```.*?^```|``.*?``|`[^`\n]*`"

# Where a rule looks.
OPENING = "opening"  # the first words of a docstring
TEXT = "text"  # comments, docstrings, templates, documentation, and the texts of the program (not of the tests)
PAGE = "page"  # templates, and the texts of the modules of the console
NAME = "name"  # names of modules, classes, functions, arguments and variables, as words: make_room is "make room"


@dataclass(frozen=True)
class Rule:
    """A rejected wording. ``enforced`` names the places that are free of it and stay so, beside names."""

    name: str
    pattern: str
    instead: str
    places: frozenset[str]
    enforced: frozenset[str]


def rule(name: str, pattern: str, instead: str, *places: str, enforced: Iterable[str] = ()) -> Rule:
    words = pattern.replace(" ", r"\s+")
    return Rule(name, rf"\b(?:{words})\b", instead, frozenset(places), frozenset(enforced))


# fmt: off
RULES = [
    # Openings of docstrings, which begin with a verb ("Return …", "Write …") or with the noun that they describe.
    rule("Have …", "Have", "a verb that says what is done", OPENING, enforced=[OPENING]),
    rule("Leave …", "Leave", "Filter …, Select …, Keep …", OPENING, enforced=[OPENING]),
    rule("What …", "What", "a noun: The rows …, The settings …", OPENING, enforced=[OPENING]),
    rule("Those …", "Those", "the noun itself", OPENING, enforced=[OPENING]),
    rule("Whoever …", "Whoever", "the role: A person …, The worker …", OPENING, enforced=[OPENING]),
    rule("Say whether …", "Say whether|Say if", "Return whether …", OPENING, enforced=[OPENING]),
    rule("Answer …", "Answer", "Return the response …, Respond with …", OPENING, enforced=[OPENING]),
    rule("Tell …", "Tell", "Return …, Send …, Notify …", OPENING, enforced=[OPENING]),
    rule("Raises: …", "Raises:", "Return …. Raises: …, or Raise … if …", OPENING, enforced=[OPENING]),
    # Words.
    rule("anew", "anew", "again", TEXT, NAME, enforced=[TEXT]),
    rule("archaic adverb", "hence|lest|likewise|thereby|therein|thereof", "plain sentences", TEXT, enforced=[TEXT]),
    rule("asked", "asked", "requested", TEXT, NAME, enforced=[TEXT]),
    rule("bereft", "bereft", "orphaned", TEXT, NAME, enforced=[TEXT]),
    rule("company", "company", "the noun itself", TEXT, NAME, enforced=[TEXT]),
    rule("comes to nothing", "comes? to nothing", "is discarded", TEXT, enforced=[TEXT]),
    rule("courier", "couriers?", "delivery, delivery thread", TEXT, NAME, enforced=[TEXT]),
    rule("deed", "deeds?", "event", TEXT, NAME, enforced=[TEXT]),
    rule("for good", "for good", "permanently", TEXT, enforced=[TEXT]),
    rule("hands of", "hands of", "owned by", TEXT, enforced=[TEXT]),
    rule("has to do with", "ha(?:s|ve|d) to do with", "concerns, uses, calls", TEXT, enforced=[TEXT]),
    rule("heed", "heed(?:s|ed|ing)?", "check, obey", TEXT, NAME, enforced=[TEXT]),
    rule("in few words", "in few words", "in short form", TEXT, enforced=[TEXT]),
    rule("it is then", "(?:as )?it is then", "current", TEXT, enforced=[TEXT]),
    rule("know of", "kn(?:ow|ows|ew) of", "know, have", TEXT, enforced=[TEXT]),
    rule("lateness", "lateness", "timeout", TEXT, NAME, enforced=[TEXT]),
    rule("let go", "let(?:s|ting)? go", "release", TEXT, NAME, enforced=[TEXT]),
    rule("letter", r"(?<!dead\s)letters?", "message", NAME),
    rule("now and then", "now and then", "at intervals", TEXT, enforced=[TEXT]),
    rule("oftener", "oftener", "more often", TEXT, NAME, enforced=[TEXT]),
    rule("pass over", "pass(?:es|ed|ing)? over", "defer for lack of a slot", TEXT, NAME, enforced=[TEXT]),
    rule("put off", "put(?:s|ting)? off", "defer, postpone", TEXT, NAME, enforced=[TEXT]),
    rule("room", r"(?<!make\s)(?<!makes\s)(?<!making\s)rooms?", "capacity, space", TEXT, NAME, enforced=[TEXT]),
    rule("seat", "seats?", "slot", TEXT, NAME, enforced=[TEXT, NAME]),
    rule("shall", "shall", "must, is to", TEXT, enforced=[TEXT]),
    rule("standing", "standing", "current state, current rules", TEXT, NAME, enforced=[TEXT]),
    rule("surrender", "surrender(?:s|ed|ing)?", "fail, time out", TEXT, NAME, enforced=[TEXT]),
    rule("thing", "things?", "object, or the noun itself", TEXT, NAME, enforced=[TEXT]),
    rule("told", "told", "sent, reported, notified", TEXT, NAME, enforced=[TEXT]),
    rule("what becomes of", "what becomes? of", "the result of", TEXT, enforced=[TEXT]),
    rule("whose it is", "whose (?:it|this) is", "the owner, the project", TEXT, enforced=[TEXT]),
    rule("whoever", "whoever", "the role: the person, the caller", TEXT, NAME, enforced=[TEXT]),
    # Names of tests, in which a noun or a condition takes the place of a clause.
    rule(
        "clause in the name of a test",
        "test .*(?:what|whoever|whatever|nobody|somebody|goes on|once more|its way)",
        "the noun, the condition, a verb of the field",
        NAME,
    ),
    # Phrases on pages.
    rule("about it", "about it", "Details", PAGE, enforced=[PAGE]),
    rule("done to it", "done to it", "the events or the actions of the object", PAGE, enforced=[PAGE]),
    rule("goes on", "goes? on", "continues, is resumed", PAGE, enforced=[PAGE]),
    rule("left empty", "left empty,? it|left empty:", "Leave empty to …, Leave empty for …", PAGE, enforced=[PAGE]),
    rule("looks at", "looks? at", "examines, checks; Scope", PAGE, enforced=[PAGE]),
    rule("must not happen", "must not happen", "must not run", PAGE, enforced=[PAGE]),
    rule("nobody, somebody", "nobody|somebody", "the role, or the passive voice", PAGE, enforced=[PAGE]),
    rule("nothing was", "nothing (?:was|is|will be)", "no events, no actions, …", PAGE, enforced=[PAGE]),
]
# fmt: on


@dataclass(frozen=True)
class Passage:
    """A piece of text or a name, and where it stands."""

    path: Path
    line: int
    place: str
    text: str


def python_passages(path: Path, source: str) -> Iterator[Passage]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {node.body[0].value for node in nodes if isinstance(node, documented) and ast.get_docstring(node)}
    for node in nodes:
        if isinstance(node, ast.Constant) and node in docstrings:
            yield Passage(path, node.lineno, OPENING, node.value)
            yield Passage(path, node.lineno, TEXT, node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_program_text(path, node.value):
            yield Passage(path, node.lineno, TEXT, node.value)
            if "console" in path.parts:
                yield Passage(path, node.lineno, PAGE, node.value)
        elif (name := as_words(defined_name(node))) and (path, name) not in KEPT_NAMES:
            yield Passage(path, node.lineno, NAME, name)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Passage(path, token.start[0], TEXT, token.string)
    yield Passage(path, 1, NAME, as_words(path.stem))


def is_program_text(path: Path, text: str) -> bool:
    """Return whether a string constant is for people. Keys and columns have neither a space nor a capital letter."""
    return path.parts[0] != "tests" and bool(re.search(r"[A-Za-z] [A-Za-z]|^[A-Z][a-z]", text))


def defined_name(node: ast.AST) -> str:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
    return ""


def as_words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower()


def without(pattern: str, source: str) -> str:
    """Return a text with the parts that match replaced by an ellipsis, on the same lines as before.

    The ellipsis is neither a part of a word nor a delimiter of code, so that a further pattern can follow.
    """
    return re.sub(pattern, lambda found: "…" + "\n" * found[0].count("\n"), source, flags=re.DOTALL | re.MULTILINE)


def passages(path: Path) -> Iterator[Passage]:
    source = (ROOT / path).read_text()
    if path.suffix == ".py":
        yield from python_passages(path, source)
    elif path.suffix in {".html", ".txt"}:
        shown = without(r"\{\{.*?\}\}|\{%.*?%\}|\b(?:class|id|name)=\"[^\"]*\"", source)
        yield Passage(path, 1, TEXT, shown)
        yield Passage(path, 1, PAGE, shown)
    else:
        yield Passage(path, 1, TEXT, source)


def checked_files() -> Iterator[Path]:
    """Yield the files of the repository but migrations, which are never changed, and the record of past releases."""
    yield from map(Path, FILES)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            found = path.relative_to(ROOT)
            if (
                path.suffix in {".py", ".md", ".html", ".txt"}
                and "migrations" not in found.parts
                and found not in EXEMPT
            ):
                yield found


def breaches(passage: Passage) -> Iterator[tuple[Rule, Passage]]:
    """Yield each rule that a passage breaks, with the line on which it does. Quoted code is not looked at."""
    text = without(CODE, passage.text)
    for each in RULES:
        if passage.place not in each.places or (passage.path, each.name) in KEPT_TEXTS:
            continue
        start = r"\A\s*" if passage.place == OPENING else ""
        for match in re.finditer(start + each.pattern, text, 0 if start else re.IGNORECASE):
            before = text[: match.end()].count("\n")
            line = passage.text.splitlines()[before].strip()
            yield each, Passage(passage.path, passage.line + before, passage.place, line)


def is_enforced(broken: Rule, passage: Passage) -> bool:
    return passage.place == NAME or passage.place in broken.enforced


def enforcement(each: Rule, place: str) -> str:
    return "yes" if place == NAME or place in each.enforced else ""


def column_of(path: Path) -> str:
    return str(path) if str(path) in FILES else path.parts[0]


def report(found: list[tuple[Rule, Passage]]) -> str:
    """Return a table of how often each rule is broken: a row for each rule and place, a column for each folder."""
    columns = [*FOLDERS, *FILES]
    counts = Counter((each.name, passage.place, column_of(passage.path)) for each, passage in found)
    lines = [f"{'':24}" + "".join(f"{column:>15}" for column in columns) + f"{'':>4}enforced"]
    for each in RULES:
        for place in sorted(each.places):
            cells = "".join(f"{counts[each.name, place, column] or '':>15}" for column in columns)
            lines.append(f"{f'{each.name} ({place})':24}{cells}{'':>4}{enforcement(each, place)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.wording", description=__doc__)
    parser.add_argument("--report", action="store_true", help="print how often each rule is broken, and exit with 0")
    parser.add_argument(
        "--rule", choices=[each.name for each in RULES], help="look at this rule alone, enforced or not"
    )
    options = parser.parse_args()
    found = [breach for path in checked_files() for passage in passages(path) for breach in breaches(passage)]
    if options.report:
        print(report(found))  # noqa: T201
        return 0
    shown = [
        (each, passage)
        for each, passage in found
        if (each.name == options.rule if options.rule else is_enforced(each, passage))
    ]
    for each, passage in shown:
        print(f"{passage.path}:{passage.line}: {each.name}, better: {each.instead} [{passage.place}] {passage.text}")  # noqa: T201
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
