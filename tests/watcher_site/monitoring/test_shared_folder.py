"""The folder through which the workers of a web process share their counters."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from watcher_site.monitoring.shared_folder import SharedFolder

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the variable, which the folder changes itself."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)
    yield
    monkeypatch.undo()


def test_folder_is_created_and_removed() -> None:
    folder = SharedFolder()
    folder.create()
    assert os.environ[VARIABLE] == str(folder.path)
    folder.remove()
    assert not Path(os.environ[VARIABLE]).exists()


def test_stale_counter_files_are_deleted_from_a_configured_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for name in ("counter_7.db", "histogram_7.db", "site.db"):
        (tmp_path / name).touch()
    folder = SharedFolder()
    folder.create()
    folder.remove()
    assert [file.name for file in tmp_path.iterdir()] == ["site.db"]


def test_missing_configured_folder_is_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "metrics"))
    SharedFolder().create()
    assert (tmp_path / "metrics").is_dir()
