"""A Prometheus server that wants to know who asks, and whose certificate must be trusted."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from pytest_django import Settings

from cluster.datasources.base import DatasourceError, Reading
from cluster.datasources.prometheus import Prometheus
from tests.cluster.datasources.server import Series, constant, prometheus

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]
PASSWORD = "a password of the tests"
PASSWORD_HASH = "$2b$04$W3qOR7uI9oACKcaYionX9eDrBrh2OloQ6fpvRc59.ocR0.vdKXHIy"
PROTECTION = f"""
tls_server_config:
  cert_file: server.pem
  key_file: server.pem
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: authority.pem
basic_auth_users:
  watcher: {PASSWORD_HASH}
"""


@dataclass(frozen=True)
class Served:
    port: int
    certificates: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("protected")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    for name, identity in (("server.pem", "127.0.0.1"), ("client.pem", "watcher.example.org")):
        authority.issue_cert(identity).private_key_and_cert_chain_pem.write_to_path(str(folder / name))
    trustme.CA().cert_pem.write_to_path(str(folder / "another-authority.pem"))
    with prometheus(folder, [Series("host_power", {"fqdn": "compute1"}, constant(100))], PROTECTION) as port:
        yield Served(port, folder)


@pytest.fixture
def known(served: Served, settings: Settings) -> Settings:
    """Settings with all that the server wants."""
    settings.PROMETHEUS_URL = f"https://127.0.0.1:{served.port}"
    settings.PROMETHEUS_USERNAME, settings.PROMETHEUS_PASSWORD = "watcher", PASSWORD
    settings.PROMETHEUS_CAFILE = str(served.certificates / "authority.pem")
    settings.PROMETHEUS_CERTFILE = str(served.certificates / "client.pem")
    settings.DATASOURCE_ATTEMPTS, settings.DATASOURCE_WAIT = 3, 0
    return settings


def power() -> dict[str, float]:
    return dict(Prometheus().read(Reading("host_power", 300)))


@pytest.mark.usefixtures("known")
def test_who_is_known_and_trusts_the_certificate_gets_an_answer() -> None:
    assert power() == {"compute1": 100}


def test_a_wrong_password_is_refused_and_not_repeated(known: Settings) -> None:
    known.PROMETHEUS_PASSWORD = "another password"
    with pytest.raises(DatasourceError, match=r"refused the query with status 401\.") as refusal:
        power()
    assert "password" not in str(refusal.value)


def test_a_certificate_of_another_authority_is_not_trusted(known: Settings, served: Served) -> None:
    known.PROMETHEUS_CAFILE = str(served.certificates / "another-authority.pem")
    with pytest.raises(DatasourceError, match=r"is not trusted: .*certificate verify failed"):
        power()


def test_the_authorities_of_the_machine_count_where_none_is_named(known: Settings) -> None:
    known.PROMETHEUS_CAFILE = ""
    with pytest.raises(DatasourceError, match="is not trusted"):
        power()


def test_a_caller_without_a_certificate_gets_no_answer(known: Settings) -> None:
    known.PROMETHEUS_CERTFILE = ""
    with pytest.raises(DatasourceError, match=r"(is not trusted|is not available)"):
        power()


def test_a_file_of_authorities_that_is_gone_is_named(known: Settings, tmp_path: Path) -> None:
    known.PROMETHEUS_CAFILE = str(tmp_path / "gone.pem")
    with pytest.raises(DatasourceError, match=r"cannot be queried: .*gone\.pem"):
        power()
