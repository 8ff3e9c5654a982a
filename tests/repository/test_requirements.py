"""The packages in .ci/requirements, and those that pyproject.toml requires."""

import re
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.processes import ROOT

REQUIREMENTS = ROOT / ".ci" / "requirements"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()
# The options with which the Makefile compiles each file.
COMPILED = dict(re.findall(r"^\t\$\(COMPILE\)/(\w+\.txt) (.*)$", MAKEFILE, re.MULTILINE))
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def direct_requirements(file: str) -> list[Requirement]:
    """Return the requirements of pyproject.toml from which a file is compiled."""
    options, project = COMPILED[file], PYPROJECT["project"]
    texts = [*project["dependencies"]] if "pyproject.toml" in options else []
    for extra in re.findall(r"--extra (\w+)", options):
        texts += project["optional-dependencies"][extra]
    for group in re.findall(r"--group (\w+)", options):
        texts += PYPROJECT["dependency-groups"][group]
    return [Requirement(text) for text in texts]


def read_packages(file: str) -> list[tuple[Requirement, list[str], str]]:
    """Return the packages of a file, each with its options and with the comment that names its dependents."""
    text = (REQUIREMENTS / file).read_text().replace("\\\n", "")
    packages = []
    for line, comment in re.findall(r"^(?!#)(\S.*)\n(?: +# (.*)\n)?", text, re.MULTILINE):
        requirement, *options = re.split(r"\s+(?=--)", line.strip())
        packages.append((Requirement(requirement), options, comment))
    return packages


def version_of(package: Requirement) -> str:
    (pin,) = package.specifier
    assert pin.operator == "=="
    return pin.version


def test_makefile_compiles_each_file() -> None:
    assert set(COMPILED) == {file.name for file in REQUIREMENTS.iterdir()}


@pytest.mark.parametrize("file", COMPILED)
def test_file_has_the_direct_requirements_of_pyproject(file: str) -> None:
    """Run ``make requirements`` after a change of pyproject.toml."""
    direct = {package.name for package, _, comment in read_packages(file) if "watcher-site" in comment}
    assert direct == {canonicalize_name(requirement.name) for requirement in direct_requirements(file)}


@pytest.mark.parametrize("file", COMPILED)
def test_versions_satisfy_pyproject(file: str) -> None:
    versions = {package.name: version_of(package) for package, _, _ in read_packages(file)}
    refused = [
        str(requirement)
        for requirement in direct_requirements(file)
        if not requirement.specifier.contains(versions[canonicalize_name(requirement.name)], prereleases=True)
    ]
    assert refused == []


@pytest.mark.parametrize("file", COMPILED)
def test_each_package_has_hashes_and_no_other_option(file: str) -> None:
    packages = read_packages(file)
    assert [str(package) for package, hashes, _ in packages if not hashes or package.url] == []
    assert [option for _, options, _ in packages for option in options if not HASH.fullmatch(option)] == []


def test_package_of_the_site_has_one_version_in_all_files() -> None:
    versions: dict[str, set[str]] = {}
    for file in set(COMPILED) - {"conformance.txt"}:
        for package, _, _ in read_packages(file):
            versions.setdefault(package.name, set()).add(version_of(package))
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("target", "tampered"),
    [
        (".venv/installed", True),
        (".venv/installed-openstack", True),
        (".venv/installed-dev", True),
        (".venv/installed-dev", False),
    ],
)
def test_make_refuses_a_package_with_another_hash(target: str, tampered: bool, tmp_path: Path) -> None:
    """The package is a file in a folder, and pip is the one of this environment."""
    wheel = tmp_path / "sample-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as file:
        file.writestr("sample-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n")
        file.writestr("sample-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("sample-1.0.dist-info/RECORD", "")
    digest = sha256(wheel.read_bytes() + b"x" * tampered).hexdigest()
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "made").touch()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".ci" / "requirements").mkdir(parents=True)
    for name in COMPILED:
        (tmp_path / ".ci" / "requirements" / name).write_text(f"sample==1.0 --hash=sha256:{digest}\n")
    variables = [f"ENVIRONMENT={sys.executable}", "PIP_SITE=true"]
    environment = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    environment |= {"PIP_TARGET": str(tmp_path / "target"), "PIP_NO_CACHE_DIR": "1"}
    ended = subprocess.run(
        ["make", target, *variables], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    refused = ended.returncode != 0 and "DO NOT MATCH THE HASHES" in ended.stderr
    assert refused is tampered, ended.stderr
    assert (tmp_path / "target" / "sample-1.0.dist-info").exists() is not tampered
