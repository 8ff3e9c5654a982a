"""Paths at which the site speaks as another service does: their errors have that service's shape."""

import pytest
from django.test import Client

from tests.api import Caller, fault


@pytest.mark.parametrize("path", ["/compute/nowhere", "/compute/v2.1/nowhere/else"])
def test_a_path_that_is_none_is_answered_in_the_words_of_the_compute_service(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert answer.json() == {"itemNotFound": {"code": 404, "message": "The resource could not be found."}}


def test_a_path_that_only_begins_alike_is_answered_as_the_site_answers() -> None:
    assert fault(Caller(None).client.get("/computers")) == "The resource could not be found."
