"""Samples from a Prometheus server behind Aetos, which asks for a token of Keystone (docs/metrics.md, "Aetos")."""

from typing import Any

import requests

from cluster.datasources.keystone import KeystoneDatasource
from cluster.datasources.prometheus import QUERY_PATH, Prometheus


class Aetos(KeystoneDatasource, Prometheus):
    """The queries, series and labels are those of `Prometheus`; the catalog of the cloud has the address."""

    name = "aetos"
    service_type = "metric-storage"

    def send(self, expression: str) -> requests.Response:
        # Aetos takes queries by GET alone.
        return self.send_authenticated("GET", QUERY_PATH, params={"query": expression})

    def find_reason(self, answer: Any) -> str:
        # Its own refusals have a text, or an object with one, where Prometheus has an error.
        reason = answer["error_message"]
        return str(reason if isinstance(reason, str) else reason["faultstring"])
