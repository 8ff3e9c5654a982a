"""A Prometheus server with TLS, client certificates and a password."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from pytest_django import Settings

from cluster.datasources.base import DatasourceError, Reading
from cluster.datasources.prometheus import Prometheus
from tests.cluster.datasources.prometheus_server import Series, constant, prometheus

pytestmark = [pytest.mark.programs("prometheus", "promtool"), pytest.mark.slow]
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
def client_settings(served: Served, settings: Settings) -> Settings:
    """Settings with the credentials and certificates that the server requires."""
    settings.PROMETHEUS_URL = f"https://127.0.0.1:{served.port}"
    settings.PROMETHEUS_USERNAME, settings.PROMETHEUS_PASSWORD = "watcher", PASSWORD
    settings.PROMETHEUS_CAFILE = str(served.certificates / "authority.pem")
    settings.PROMETHEUS_CERTFILE = str(served.certificates / "client.pem")
    settings.DATASOURCE_ATTEMPTS, settings.DATASOURCE_WAIT = 3, 0
    return settings


def power() -> dict[str, float]:
    return dict(Prometheus().read(Reading("host_power", 300)))


@pytest.mark.usefixtures("client_settings")
def test_request_with_credentials_and_certificates_succeeds() -> None:
    assert power() == {"compute1": 100}


def test_wrong_password_is_refused_and_not_retried(client_settings: Settings) -> None:
    client_settings.PROMETHEUS_PASSWORD = "another password"
    with pytest.raises(DatasourceError, match=r"refused the query with status 401\.") as refusal:
        power()
    assert "password" not in str(refusal.value)


def test_certificate_of_an_unknown_authority_is_not_trusted(client_settings: Settings, served: Served) -> None:
    client_settings.PROMETHEUS_CAFILE = str(served.certificates / "another-authority.pem")
    with pytest.raises(DatasourceError, match=r"is not trusted: .*certificate verify failed"):
        power()


def test_system_certificate_authorities_are_the_default(client_settings: Settings) -> None:
    client_settings.PROMETHEUS_CAFILE = ""
    with pytest.raises(DatasourceError, match="is not trusted"):
        power()


def test_request_without_a_client_certificate_fails(client_settings: Settings) -> None:
    client_settings.PROMETHEUS_CERTFILE = ""
    with pytest.raises(DatasourceError, match=r"(is not trusted|is not available)"):
        power()


def test_missing_authority_file_is_reported(client_settings: Settings, tmp_path: Path) -> None:
    client_settings.PROMETHEUS_CAFILE = str(tmp_path / "gone.pem")
    with pytest.raises(DatasourceError, match=r"cannot be queried: .*gone\.pem"):
        power()
