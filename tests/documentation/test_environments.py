"""The settings accept the environment variables and the configuration files of the documentation."""

import re
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from keystoneauth1.loading import get_auth_plugin_conf_options
from keystonemiddleware import opts
from oslo_config import iniparser

from tests.documentation.blocks import read_text
from tests.documentation.test_documented_commands import assigned_words, shell_commands
from tests.watcher_site.site_process import run

# A path of the reader's machine, by its last part.
FILE = re.compile(r"^/(?:etc|run)/[\w/.-]+$")
KEYSTONE = read_text("docs/authentication.md", "## Tokens of Keystone", language="ini")
POLICY = read_text("docs/authentication.md", "## Policy file", language="yaml")
CONTENTS = {
    "keystone.conf": KEYSTONE,
    "oidc": "secret",
    "maas.key": "consumer:token:secret",
    "cloud.pem": Path(certifi.where()).read_text(),
    "private-ca.pem": Path(certifi.where()).read_text(),
}


def variables(text: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Return the variables of shell blocks, with files in this folder for those that they name."""
    for command in shell_commands(text):
        words = assigned_words(command)
        assert words or command[0] == ".venv/bin/pip", f"{command} is not run."
        for word in words:
            name, _, value = word.partition("=")
            if FILE.match(value):
                file = folder / Path(value).name
                file.write_text(CONTENTS[file.name])
                value = str(file)
            yield name, value


@pytest.mark.parametrize(
    "text",
    [
        read_text("docs/authentication.md", "## Tokens of Keystone"),
        read_text("docs/authentication.md", "## Login with Keystone"),
        read_text("docs/authentication.md", "## Login with OpenID Connect"),
        read_text("docs/openstack.md", "### MAAS"),
        read_text("docs/operating.md", "## Workers on several machines", number=1),
        read_text("docs/operating.md", "## Workers on several machines", number=2),
        read_text("docs/monitoring.md", "## Metrics", number=1),
        read_text("docs/monitoring.md", "## Traces"),
    ],
    ids=lambda text: re.findall(r"[A-Z_]{8,}", text)[0],
)
def test_settings_accept_documented_variables(text: str, tmp_path: Path) -> None:
    ended = run("manage.py", "check", **dict(variables(text, tmp_path)))
    assert (ended.returncode, ended.stderr) == (0, "")


def test_keystone_middleware_has_the_documented_options() -> None:
    documented = read_options(KEYSTONE)
    options = [option for _, group in opts.list_auth_token_opts() for option in group]
    known = {option.dest for option in [*options, *get_auth_plugin_conf_options("password")]}
    assert documented.keys() == {"keystone_authtoken"}
    assert documented["keystone_authtoken"].keys() - known == set()


def read_options(text: str) -> dict[str, dict[str, str]]:
    """Return the values of a configuration file by section and name, as oslo.config parses it."""
    found: dict[str, dict[str, str]] = {}

    class Parser(iniparser.BaseParser):  # type: ignore[misc]
        def new_section(self, section: str) -> None:
            found.setdefault(section, {})
            self.section = section

        def assignment(self, key: str, value: list[str]) -> None:
            found[self.section][key] = "\n".join(value)

        def comment(self, comment: str) -> None:
            pass

    Parser().parse(text.splitlines(keepends=True))
    return found


def test_check_of_the_site_accepts_the_documented_policies(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    ended = run("manage.py", "check", WATCHER_POLICY_FILE=str(tmp_path / "policy.yaml"))
    assert (ended.returncode, ended.stderr) == (0, "")
