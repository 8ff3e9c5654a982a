"""Each code block of README.md and docs/ is read by a test that runs or checks it, or is exempt for a reason."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.documentation.blocks import PAGES, Block, all_blocks, find_blocks
from tests.processes import ROOT

# A call that may read a block: its page and its heading are constants.
CANDIDATE = re.compile(r'\.md",\s+"#')
# The reasons by the page and the first line of a block.
EXEMPTIONS = {
    (
        "docs/deployment.md",
        "docker build --file docs/deployment/Containerfile --tag watcher-site .",
    ): "needs a container engine; tests/end_to_end/processes/test_image.py runs the steps of the file",
    (
        "docs/deployment.md",
        "docker build --file docs/deployment/Containerfile --tag registry.example.org/watcher-site:1.0.0 .",
    ): "needs a container engine and a registry",
    (
        "docs/deployment.md",
        "echo WATCHER_HOSTNAME=watcher.example.org > .env",
    ): "needs Docker Compose; tests/deployment/test_containers.py checks the file",
    (
        "docs/deployment.md",
        "docker compose exec web watcher-site create_user NAME --group cloud-admin",
    ): "needs a site in containers; the commands for systemd include this one",
    (
        "docs/deployment.md",
        "useradd --system --no-create-home --home-dir /srv/watcher-site --shell /usr/sbin/nologin watcher",
    ): "adds a user to the system; tests/end_to_end/processes/test_wheel.py installs a wheel",
    (
        "docs/deployment.md",
        "kubectl apply --kustomize docs/deployment/kubernetes",
    ): "needs a Kubernetes cluster; tests/deployment/test_kubernetes.py checks the manifests",
    (
        "docs/deployment.md",
        "kubectl --namespace watcher-site exec deployment/web -- watcher-site create_user NAME --group cloud-admin",
    ): "needs a Kubernetes cluster; the commands for systemd include this one",
    (
        "docs/deployment.md",
        "kubectl --namespace watcher-site delete job migrate --ignore-not-found",
    ): "needs a Kubernetes cluster",
    (
        "docs/operating.md",
        "python3 -m venv .venv",
    ): "downloads all packages; tests/repository/test_requirements.py checks the files of requirements",
    (
        "docs/operating.md",
        "python3 -m venv /srv/watcher-site/.venv",
    ): "downloads all packages; tests/end_to_end/processes/test_wheel.py installs a wheel",
}


@cache
def read_blocks() -> set[Block]:
    """Return the blocks that tests read."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if CANDIDATE.search(file.read_text())]
    calls = (node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    return {block for call in calls for block in blocks_of(call)}


def blocks_of(call: ast.Call) -> list[Block]:
    constants = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    match constants:
        case [str(page), str(heading), *_] if page in PAGES and heading.startswith("#"):
            return find_blocks(page, heading, **options(call))
    return []


def options(call: ast.Call) -> dict[str, Any]:
    """Return the arguments that select one language, or one block of a section."""
    return {
        keyword.arg: keyword.value.value
        for keyword in call.keywords
        if keyword.arg in ("language", "number") and isinstance(keyword.value, ast.Constant)
    }


def key(block: Block) -> tuple[str, str]:
    return block.page, block.text.partition("\n")[0]


def unread_blocks() -> Iterator[Block]:
    return (block for page in PAGES for block in all_blocks(page) if block not in read_blocks())


@pytest.mark.parametrize("page", PAGES)
def test_each_block_is_read_by_a_test_or_exempt(page: str) -> None:
    problems = [
        f"{page}:{block.line}: no test runs this block: {key(block)[1]!r}. Run or check it in a test that reads it by "
        f"find_blocks({page!r}, {block.headings[-1]!r}, …), or add it to EXEMPTIONS with the reason."
        for block in unread_blocks()
        if block.page == page and key(block) not in EXEMPTIONS
    ]
    assert not problems, "\n".join(problems)


def test_each_exemption_is_of_an_existing_block_that_no_test_reads() -> None:
    assert EXEMPTIONS.keys() - {key(block) for block in unread_blocks()} == set()
