"""Pages and static files are compressed for browsers, and responses of the API are not."""

import re
from gzip import decompress

from django.contrib.auth.models import User
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse

from tests.builders import make_plan

ACCEPTED = {"Accept-Encoding": "gzip"}


def body(response: HttpResponseBase) -> bytes:
    return b"".join(response.streaming_content) if response.streaming else response.content


def test_first_load_of_a_plan_page_with_100_actions_is_at_most_120_kb(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = make_plan({str(number): [] for number in range(100)}, state="ONGOING")
    page = body(client.get(reverse("plans:detail", args=[plan.uuid]), headers=ACCEPTED))
    files = set(re.findall(rb'(?:src|href)="(/static/[^"]+)"', decompress(page)))
    answers = [client.get(file.decode(), headers=ACCEPTED) for file in files]
    assert (len(files), {answer.status_code for answer in answers}) == (9, {200})
    assert len(page) + sum(len(body(answer)) for answer in answers) <= 120_000


def test_page_is_not_compressed_without_accept_encoding(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    assert b"</html>" in client.get(reverse("plans:list")).content


def test_api_responses_are_not_compressed(client: Client, cloud_admin: User) -> None:
    make_plan({str(number): [] for number in range(10)})
    client.force_login(cloud_admin)
    answer = client.get("/v1/actions", headers=ACCEPTED)
    assert (answer.status_code, answer.headers.get("Content-Encoding")) == (200, None)
