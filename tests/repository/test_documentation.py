"""The documentation matches the code, and the citations in both exist."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from django.core.management import get_commands
from pytest_django import Settings

from actions.api.actions import ActionView
from actions.graph.proposals import ProposedAction
from actions.models import REASON_LENGTH
from actions.types.base import ActionContext, ActionSkipException, Answer, Outcome, make
from cluster.models import Server
from plans.planning.proposals import propose
from tests.audits.clusters import cluster, node, server
from tests.builders import make_node, make_server
from tests.documentation.blocks import read_text
from watcher_site import plugins
from watcher_site.api import versions
from watcher_site.api.openapi.schema import REFUSALS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
# The changelog also describes former states of the files.
LIVING_PAGES = [page for page in PAGES if page.name != "CHANGELOG.md"]
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
API = (ROOT / "docs" / "api.md").read_text()
API_VERSIONS = (ROOT / "docs" / "api-versions.md").read_text()
PLUG_INS = (ROOT / "docs" / "plug-ins.md").read_text()

APPS = ("watcher_site", "cluster", "actions", "plans", "audits")
FOLDERS = "|".join((*APPS, "tests", "templates", "docs", r"\.ci"))
# The page, a comma, and the heading in quotation marks.
CITED_HEADING = re.compile(r'((?:docs/)?[\w-]+\.md)`?, "([^"]+)"')
CITED_PATH = re.compile(rf"(?<![\w./{{}}<>-])((?:{FOLDERS})/[\w./-]*\w\.(?:py|md|html|json|toml|txt|png|js|css))\b")
# Two names alone may also be a permission, as actions.skip_action.
CITED_MODULE = re.compile(rf"`((?:{'|'.join(APPS)})(?:\.\w+){{2,}})`")
# A path with names of its file behind it: `path.py` (`name`, `other`), or (`path.py`, `name`).
CITED_NAMES = re.compile(r"`([\w./]+\.py)`(?: \(|, )((?:`\w+`(?:, )?)+)")
# In the names of files that stand for any file.
EXAMPLE = "example.py"
EXAMPLE_SERVER = "11111111-2222-4333-8444-555555555555"
# Templates and static files are named relative to their folders.
PATH_ROOTS = (ROOT, ROOT / "templates", ROOT / "templates" / "static")


def settings_variables() -> set[str]:
    """Return the environment variables that the settings read: the names given to the functions read and read_…"""
    calls = [
        node
        for file in ("settings.py", "plugin_settings.py")
        for node in ast.walk(ast.parse((ROOT / "watcher_site" / file).read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("read")
    ]
    return {next(a.value for a in call.args if isinstance(a, ast.Constant)) for call in calls}


def documented_variables() -> set[str]:
    return set(re.findall(r"^\| `([A-Z_]+)` \|", CONFIGURATION, re.MULTILINE))


def test_every_settings_variable_is_documented_and_no_other() -> None:
    assert documented_variables() == settings_variables()


def test_environment_variables_are_read_only_in_the_settings() -> None:
    readers = [
        path.relative_to(ROOT).as_posix()
        for app in ("watcher_site", "cluster", "actions", "plans", "audits")
        for path in (ROOT / app).rglob("*.py")
        if re.search(r"os\.(environ\b(?!\.setdefault)|getenv)", path.read_text())
    ]
    # A shell passes the line that it completes in variables.
    assert readers == ["watcher_site/processes/completion.py"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_of_the_repository_lead_to_existing_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_management_commands_exist(page: Path) -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", page.read_text()))
    assert named - set(get_commands()) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_make_targets_exist(page: Path) -> None:
    named = set(re.findall(r"`make ([a-z-]+)`", page.read_text()))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named - targets == set()


@pytest.fixture
def example(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the action type of the documentation as a plug-in."""
    code = read_text("docs/writing-an-action-type.md", "## An example", language="python", number=0)
    (tmp_path / "documented.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    settings.ACTION_TYPES = ["documented.Restart"]
    settings.EMBEDDED_CLOUD_SECONDS = 0


@pytest.mark.django_db(transaction=True)
def test_documented_action_type_works(example: None) -> None:
    server = make_server(node=make_node())
    code = read_text("docs/writing-an-action-type.md", "## An example", language="python", number=1)
    exec(code.replace(EXAMPLE_SERVER, str(server.uuid)))  # noqa: S102 (the code is the documentation's)
    assert Server.objects.get(pk=server.pk).state == Server.State.ACTIVE


def test_documented_strategy_works() -> None:
    code = read_text("docs/writing-a-strategy.md", "## An example", language="python")
    documented: dict[str, Any] = {"__name__": "documented"}
    exec(code, documented)  # noqa: S102 (the code is the documentation's)
    forgotten, other = server("forgotten", metadata={"forgotten": "yes"}), server("other")
    solution = documented["StopForgotten"]().solve(cluster(node("node-1", forgotten, other)), {"label": "forgotten"})
    assert [action.input_parameters for action in solution.actions] == [{"resource_id": str(forgotten.uuid)}]


@pytest.mark.django_db
def test_documented_action_type_skips_a_missing_server(example: None) -> None:
    action = make("restart", {"resource_id": "7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11"}, ActionContext())
    with pytest.raises(ActionSkipException, match="not found"):
        action.pre_condition()


@pytest.mark.django_db
def test_documented_proposals_of_derived_actions_are_written() -> None:
    names: dict[str, Any] = {
        "ProposedAction": ProposedAction,
        "propose": propose,
        "cluster": "web",
        "nodes": ["a", "b"],
    }
    exec(read_text("docs/writing-an-action-type.md", "### Planning derived actions", language="python"), names)  # noqa: S102
    derived = names["plan"].actions.filter(derived_from__uuid=names["scale_in"].uuid)
    assert [action.action_type for action in derived] == ["node_delete", "node_delete"]


def test_documented_outcome_derives_actions() -> None:
    code = read_text("docs/writing-an-action-type.md", "## Derived actions", language="python", number=0)
    names: dict[str, Any] = {"ProposedAction": ProposedAction, "Outcome": Outcome, "Answer": Answer, "cluster": "web"}
    exec(f"def go():\n{indent(code, ' ')}", names)  # noqa: S102
    assert [action.action_type for action in names["go"]().derived] == ["node_create"] * 3 + ["node_join"] * 3


def test_every_parameter_of_a_built_in_action_type_has_a_description() -> None:
    types = plugins.load("ACTION_TYPES").values()
    rules = [(kind.name, name, rule) for kind in types for name, rule in kind.schema["properties"].items()]
    assert [(kind, name) for kind, name, rule in rules if not rule.get("description")] == []


def test_action_type_table_has_every_built_in_action_type() -> None:
    (table,) = re.findall(r"^\| action type \| effect.*?\n\n", PLUG_INS, re.DOTALL | re.MULTILINE)
    assert sorted(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == sorted(plugins.load("ACTION_TYPES"))


@pytest.mark.parametrize("setting", ["ACTION_TYPES", "STRATEGIES", "SCORING_ENGINES", "POLICY_TYPES"])
def test_generated_reference_has_every_plug_in(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    parts = import_module("generated_reference").PARTS
    text = "\n".join(parts[setting.lower().replace("_", "-")]())
    assert [name for name in plugins.load(setting) if name not in text] == []


def test_sort_keys_of_actions_are_documented() -> None:
    (paragraph,) = re.findall(r"The keys of `sort`.*?\n\n", API, re.DOTALL)
    assert set(re.findall(r"`([a-z_]+)`", paragraph)) == {
        "sort",
        "sort_key",
        *ActionView.offer(versions.MAXIMUM).sort_keys,
    }


def test_documented_version_history_matches_the_code() -> None:
    sections = re.findall(r"^## ([0-9.]+)\n\n((?:- .+\n)+)", API_VERSIONS, re.MULTILINE)
    documented = [(version, re.findall(r"^- (.+)$", changes, re.MULTILINE)) for version, changes in sections]
    assert documented == [
        (versions.format_version(version), list(changes)) for version, changes in versions.HISTORY.items()
    ]


def test_documented_error_statuses_match_the_openapi_document() -> None:
    rows = re.findall(r"^\| ((?:[0-9]{3}(?:, )?)+) \|", API, re.MULTILINE)
    documented = {int(code) for row in rows for code in row.split(", ")}
    assert documented == {*REFUSALS, 405}


def test_documented_length_limit_of_a_skip_reason_matches_the_code() -> None:
    assert re.findall(r"up to ([0-9]+)\s+characters", (ROOT / "README.md").read_text()) == [str(REASON_LENGTH)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_urls_with_a_query_are_quoted_for_the_shell(page: Path) -> None:
    code = "\n".join(re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL))
    assert re.findall(r"(?<!['\"])\bhttps?://[^\s'\"]*\?\S*", code) == []


@cache
def sources_of(folder: str) -> dict[Path, str]:
    """Return the text of the Python files of a folder, with wrapped docstrings and comments on one line."""
    files = sorted((ROOT / folder).rglob("*.py"))
    return {file: unwrapped(file.read_text()) for file in files}


def unwrapped(text: str) -> str:
    return re.sub(r"\s*\n\s*(?:#\s)?", " ", text)


def slug(heading: str) -> str:
    """Return the anchor that Markdown renderers make of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def headings_of(page: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^#+ (.+)$", prose, re.MULTILINE)


def missing_headings(text: str) -> list[tuple[str, str]]:
    """Return the citations of headings that do not exist, or of pages that do not."""
    return [(page, name) for page, name in CITED_HEADING.findall(text) if not has_heading(ROOT / page, name)]


def has_heading(page: Path, name: str) -> bool:
    return page.exists() and name in headings_of(page)


def missing_paths(text: str) -> list[str]:
    return [path for path in CITED_PATH.findall(text) if not (EXAMPLE in path or exists(path))]


def exists(path: str) -> bool:
    return any((root / path).exists() for root in PATH_ROOTS)


def missing_modules(text: str) -> list[str]:
    return [name for name in CITED_MODULE.findall(text) if not is_defined(name)]


def is_defined(dotted: str) -> bool:
    """Return whether a dotted name is a module, or whether its module has the name that follows."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:length])
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.exists():
                return length == len(parts) or re.search(rf"\b{parts[length]}\b", file.read_text()) is not None
    return False


def missing_names(text: str) -> list[str]:
    """Return the names that are cited behind a path, and that its file does not define."""
    cited = [(path, name) for path, names in CITED_NAMES.findall(text) for name in re.findall(r"\w+", names)]
    return [f"{name} of {path}" for path, name in cited if exists(path) and not defines(ROOT / path, name)]


def defines(file: Path, name: str) -> bool:
    return re.search(rf"(?:\b(?:def|class) |^\s*){name}\b\s*[(:=]", file.read_text(), re.MULTILINE) is not None


def missing_citations(texts: Iterable[tuple[Path, str]]) -> dict[str, list[str]]:
    """Return the missing headings, paths, modules and names that each text cites."""
    found = {
        path.relative_to(ROOT).as_posix(): [
            *(f"{page}, {name}" for page, name in missing_headings(text)),
            *missing_paths(text),
            *missing_modules(text),
            *missing_names(text),
        ]
        for path, text in texts
    }
    return {path: missing for path, missing in found.items() if missing}


@pytest.mark.parametrize("folder", [*APPS, "tests"])
def test_headings_paths_and_modules_cited_by_the_code_exist(folder: str) -> None:
    assert missing_citations(sources_of(folder).items()) == {}


@pytest.mark.parametrize("page", LIVING_PAGES, ids=lambda page: page.name)
def test_headings_paths_and_modules_cited_by_the_documentation_exist(page: Path) -> None:
    assert missing_citations([(page, unwrapped(page.read_text()))]) == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_headings_lead_to_existing_headings(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    anchors = [(target, anchor, (page.parent / target) if target else page) for target, anchor in links]
    assert [(t, a) for t, a, found in anchors if a not in map(slug, headings_of(found))] == []


@pytest.mark.parametrize(
    ("page", "citation"),
    [
        ("docs/api", 'See {}, "No such heading".'),
        ("docs/api", 'See `{}`,\n    # "No such heading".'),
        ("docs/no-such-page", 'See {}, "Errors".'),
        ("docs/no-such-page", "`{}` describes it."),
    ],
)
def test_citation_of_a_missing_heading_or_page_is_found(page: str, citation: str) -> None:
    text = unwrapped(citation.format(f"{page}.md"))
    assert missing_headings(text) or missing_paths(text)


@pytest.mark.parametrize("name", ["base.NoSuchClass", "no_such_module.Name", "no_such_module"])
def test_citation_of_a_missing_module_or_name_is_found(name: str) -> None:
    assert missing_modules(f"`actions.types.{name}`")


@pytest.mark.parametrize("citation", ["`watcher_site/plugins.py` (`load`, `{}`)", "(`watcher_site/plugins.py`, `{}`)"])
def test_citation_of_a_name_missing_in_its_file_is_found(citation: str) -> None:
    assert missing_names(citation.format("no_such_name")) == ["no_such_name of watcher_site/plugins.py"]
