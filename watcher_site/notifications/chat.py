"""Chat messages: incoming webhooks of Slack, or of compatible servers such as Mattermost."""

import orjson

from watcher_site.models import Subscription
from watcher_site.notifications.deliveries import SentNotification
from watcher_site.notifications.texts import describe_notification
from watcher_site.notifications.webhooks import HTTPReceiver, unseal_secret

# Slack interprets these characters, also in code blocks.
ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})


class SlackReceiver(HTTPReceiver):
    def __init__(self, subscription: Subscription) -> None:
        """Raise `Invalid` if the subscription's URL cannot be read."""
        super().__init__(unseal_secret(subscription))

    def request(self, notification: SentNotification) -> tuple[bytes, dict[str, str]]:
        return orjson.dumps({"text": make_text(notification)}), {"content-type": "application/json"}


def make_text(notification: SentNotification) -> str:
    """Return the text of a message. In a code block, names cannot mention users or contain links."""
    subject, lines, link = describe_notification(notification)
    block = "\n".join([subject, *lines]).translate(ESCAPES)
    return f"```\n{block}\n```\n{link}".rstrip()
