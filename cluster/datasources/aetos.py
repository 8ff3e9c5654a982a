"""The data source Aetos, a Prometheus server that requires a token of Keystone (docs/metrics.md, "Aetos")."""

from typing import Any

import requests

from cluster.datasources.keystone import KeystoneDatasource
from cluster.datasources.prometheus import QUERY_PATH, Prometheus


class Aetos(KeystoneDatasource, Prometheus):
    """Prometheus with Keystone authentication; its address is in the catalog of the cloud."""

    name = "aetos"
    service_type = "metric-storage"

    def send(self, expression: str) -> requests.Response:
        # Aetos accepts only GET.
        return self.send_authenticated("GET", QUERY_PATH, params={"query": expression})

    def find_reason(self, response: Any) -> str:
        # Refusals by Aetos itself have a text, or an object with a text, instead of Prometheus's error.
        reason = response["error_message"]
        return str(reason if isinstance(reason, str) else reason["faultstring"])
