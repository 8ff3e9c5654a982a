"""Errors of the mounted APIs of other services have the error format of that service."""

import pytest
from django.test import Client

from tests.api import Caller, fault


@pytest.mark.parametrize("path", ["/compute/nowhere", "/compute/v2.1/nowhere/else"])
def test_unknown_path_of_the_compute_mount_has_its_error_format(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert answer.json() == {"itemNotFound": {"code": 404, "message": "The resource could not be found."}}


def test_path_that_shares_a_prefix_with_a_mount_has_the_error_format_of_the_site() -> None:
    assert fault(Caller(None).client.get("/computers")) == "The resource could not be found."
