"""The base class of data sources that are OpenStack services, authenticated by Keystone."""

from functools import cached_property
from typing import Any

import requests
from django.conf import settings
from keystoneauth1 import exceptions as keystone
from keystoneauth1.adapter import Adapter

from cluster.datasources.base import DatasourceError
from cluster.datasources.http import HTTPDatasource, Send, Unavailable
from cluster.drivers.base import CloudError, CloudUnavailable
from cluster.drivers.openstack.access import connect, translated


class KeystoneDatasource(HTTPDatasource):
    """A data source in the catalog of the cloud `settings.OPENSTACK_CLOUD`.

    Threads share the session, which renews expired tokens.
    """

    service_type: str

    @cached_property
    def adapter(self) -> Adapter:
        # The adapter of openstacksdk would first request the versions of the service.
        config = connect(settings.DATASOURCE_TIMEOUT).config
        return Adapter(
            session=config.get_session(),
            service_type=self.service_type,
            interface=config.get_interface(self.service_type),
            region_name=config.get_region_name(self.service_type),
            endpoint_override=config.get_endpoint(self.service_type),
        )

    @property
    def place(self) -> str:
        return f"the endpoint of type {self.service_type}"

    def find_misconfiguration(self) -> str:
        try:
            with translated():
                connect(settings.DATASOURCE_TIMEOUT).config.get_session()
        except CloudError as problem:
            return str(problem)
        return ""

    def request(self, send: Send) -> tuple[int, bytes]:
        try:
            return super().request(send)
        except DatasourceError:
            # The catalog may have changed: the next request gets a new token with the catalog.
            if "adapter" in vars(self):
                self.adapter.invalidate()
            raise

    def send_authenticated(self, method: str, path: str, **arguments: Any) -> requests.Response:
        """Send a request with a token, once.

        Raises:
            Unavailable: Keystone or the service did not respond.
            DatasourceError: the cloud refuses the credentials, or its catalog has no such service.
        """
        try:
            with translated():
                # Logging would read the response. Following a redirect would send the token to another address.
                response: requests.Response = self.adapter.request(
                    path,
                    method,
                    headers={"Accept": "application/json"},
                    timeout=settings.DATASOURCE_TIMEOUT,
                    raise_exc=False,
                    redirect=False,
                    stream=True,
                    log=False,
                    **arguments,
                )
                return response
        except CloudUnavailable as problem:
            if isinstance(problem.__cause__, keystone.SSLError):
                raise self.error(f"is not trusted: {problem.__cause__}") from problem
            raise Unavailable(str(problem)) from problem
        except CloudError as problem:
            if isinstance(problem.__cause__, keystone.EndpointNotFound):
                reason = f"its catalog has no endpoint of type {self.service_type}"
                raise self.error(f"is not in the cloud: {reason}") from problem
            raise self.error(f"cannot be queried: {problem}") from problem
