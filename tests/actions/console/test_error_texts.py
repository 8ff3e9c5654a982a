"""Texts of errors shown to users (docs/compatibility.md, "Event details")."""

import pytest

from actions.types.base import ActionFailed, explain
from cluster.drivers.base import CloudError
from watcher_site.refusals import Invalid


class WithoutText(ActionFailed):
    def __str__(self) -> str:
        raise RuntimeError("the message cannot be formatted")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ActionFailed("No valid host was found."), "No valid host was found."),
        (Invalid("flavor: is none."), "flavor: is none."),
        (OSError(2, "No such file", "/etc/secret"), "FileNotFoundError"),
        (RuntimeError("SELECT password FROM people"), "RuntimeError"),
        (WithoutText(), "WithoutText"),
        (ActionFailed(""), "ActionFailed"),
        (
            CloudError("The cloud does not answer: no connection to https://user:pw@keystone.internal:5000/v3?a=b"),
            "The cloud does not answer: no connection to (an address)",
        ),
        (
            CloudError("The cloud answered with status 503 at nova.internal:8774: try later at 12:30"),
            "The cloud answered with status 503 at (an address): try later at 12:30",
        ),
        (
            CloudError("The cloud answered with status 503 at nova.internal: try later"),
            "The cloud answered with status 503 at (an address): try later",
        ),
        (
            CloudError("no connection to 10.1.2.3:5672, 10.1.2.3 or mq.internal:5672"),
            "no connection to (an address), (an address) or (an address)",
        ),
        (
            CloudError("HTTPSConnectionPool(host='nova.internal', port=443): timed out"),
            "HTTPSConnectionPool((an address)): timed out",
        ),
        (CloudError("Cloud x is not in /etc/openstack/clouds.yaml"), "Cloud x is not in (a file)"),
        (CloudError("Volume a@lvm#one is in az1/b, 1/2 done"), "Volume a@lvm#one is in az1/b, 1/2 done"),
    ],
)
def test_error_text_is_its_message_without_addresses_or_else_its_class_name(error: Exception, words: str) -> None:
    assert explain(error) == words
