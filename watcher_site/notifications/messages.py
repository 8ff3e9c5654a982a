"""The problems of deliveries, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message


def translate_answers(text: str) -> str:
    """Translate each answer in a list of those of a mail server to addresses."""
    return ", ".join(map(translate_message, text.split(", ")))


NOT_SENT = StoredMessage(_("It could not be sent: %(name)s."))
# Webhooks and chats.
ANSWERED = StoredMessage(_("It answered %(answer)s."), {"answer": r"\d{3}.*?"})
DID_NOT_ANSWER = StoredMessage(_("It did not answer within %(seconds)s seconds."))
PRIVATE_ADDRESS = StoredMessage(_("The URL has a private address, and WATCHER_WEBHOOK_PRIVATE_ADDRESSES is false."))
NOT_TRUSTED = StoredMessage(_("Its certificate is not trusted, or it speaks no TLS."))
HOST_WITHOUT_ADDRESS = StoredMessage(_("Its host has no address."))
NOT_CONNECTED = StoredMessage(_("It could not be connected to, or it closed the connection."))
# The message broker.
BROKER_DOES_NOT_ANSWER = StoredMessage(_("The broker does not answer."))
BROKER_REFUSED = StoredMessage(_("The broker refused it."))
# The mail server.
MAIL_NOT_CONFIGURED = StoredMessage(_("EMAIL_URL is not set for the relay."))
MAIL_DID_NOT_ANSWER = StoredMessage(_("The mail server did not answer within %(seconds)s seconds."))
MAIL_WITHOUT_STARTTLS = StoredMessage(_("The mail server does not offer STARTTLS."))
MAIL_PASSWORD_REFUSED = StoredMessage(_("The mail server answered %(number)s to the user and password of EMAIL_URL."))
MAIL_WITHOUT_PASSWORDS = StoredMessage(_("The mail server does not accept a user and a password on this connection."))
MAIL_SENDER_REFUSED = StoredMessage(_("The mail server answered %(number)s to the sender."))
MAIL_MESSAGE_REFUSED = StoredMessage(_("The mail server answered %(number)s to the message."))
MAIL_ADDRESSES_REFUSED = StoredMessage(
    _("The mail server answered %(answers)s."), {"answers": r"\d+ to the address .+?"}, answers=translate_answers
)
MAIL_ADDRESS_REFUSED = StoredMessage(_("%(number)s to the address %(address)s"))
MAIL_ANSWERED = StoredMessage(_("The mail server answered %(number)s."))
MAIL_NOT_TRUSTED = StoredMessage(_("The certificate of the mail server is not trusted: %(reason)s."))
MAIL_WITHOUT_TLS = StoredMessage(_("No TLS connection to the mail server could be made: %(reason)s."))
MAIL_WITHOUT_SMTP = StoredMessage(_("The mail server does not use SMTP on this port."))
MAIL_WITHOUT_ADDRESS = StoredMessage(_("The mail server's host has no address."))
MAIL_CLOSED = StoredMessage(_("The mail server closed the connection."))
MAIL_NOT_CONNECTED = StoredMessage(_("The mail server could not be connected to: %(reason)s."))
# Refused operations.
BEING_SENT = StoredMessage(_("It is being sent already."))
BEING_SENT_AGAIN = StoredMessage(_("It is being sent again."))
REQUIRED_FOR_KIND = StoredMessage(_("%(field)s: is required for a subscription of the kind %(kind)s."))
TOO_MANY_SUBSCRIPTIONS = StoredMessage(
    _("There are %(number)s subscriptions already, and WATCHER_MOST_SUBSCRIPTIONS allows %(most)s.")
)
NO_SECRET = StoredMessage(_("Subscription %(name)s has no secret: only notifications to webhooks are signed."))
NO_SUBSCRIPTION = StoredMessage(_("name: there is no subscription %(name)s."))
SUBSCRIPTION_NAME_TAKEN = StoredMessage(_("name: another subscription is called %(name)s."))
SUBSCRIPTION_NAME = StoredMessage(_("name: must be a text of 1 to %(number)s characters."))
NO_MAIL = StoredMessage(_("kind: the site sends no e-mail, because the variable EMAIL_URL is not set."))
ADDRESSES = StoredMessage(_("addresses: must be a list of 1 to %(number)s addresses of e-mail."))
ADDRESS_LENGTH_RULE = StoredMessage(_("addresses: an address is a text of 1 to %(number)s characters."))
NO_ADDRESS = StoredMessage(_("addresses: %(address)s is not an address of e-mail."))
CHAT_URL = StoredMessage(_("url: must be the whole URL of the incoming webhook, with its path."))
NOT_OF_KIND = StoredMessage(_("%(field)s: a subscription of the kind %(kind)s has none."))
EVENT_PATTERNS = StoredMessage(_("event_types: must be a list of 1 to %(number)s patterns."))
EVENT_PATTERN = StoredMessage(
    _("event_types: a pattern is an event type, in which * matches any characters: action.*")
)
NO_EVENT = StoredMessage(
    _("event_types: there is no event %(pattern)s; %(suggestion)s."), suggestion=translate_message
)
SIMILAR_EVENT = StoredMessage(_("there is %(event)s"))
EVENTS_BEGIN_WITH = StoredMessage(_("events begin with %(names)s"))
SUBSCRIPTION_DISABLED = StoredMessage(_("Subscription %(name)s is disabled: enable it first."))
URL_LENGTH_RULE = StoredMessage(_("url: must be a text of 1 to %(number)s characters."))
IPV6_WITHOUT_BRACKETS = StoredMessage(_("url: the host is invalid: an IPv6 address must be enclosed in [ and ]."))
URL_BEGINNING = StoredMessage(_("url: must begin with https:// or http:// and a host, and must not contain spaces."))
URL_WITH_PASSWORD = StoredMessage(
    _("url: must not contain a user or a password, which all users who may change the subscription can read.")
)
URL_WITHOUT_HOST = StoredMessage(_("url: has no host after %(scheme)s://."))
URL_WITH_FRAGMENT = StoredMessage(_("url: must not contain a fragment (#)."))
URL_PORT = StoredMessage(_("url: the port must be a number from 1 to 65535."))
URL_ESCAPE = StoredMessage(_("url: %(escape)s is not a valid escape: write a percent sign as %%25."))
URL_HOST = StoredMessage(_("url: %(host)s is not a valid host."))
URL_HOST_WITHOUT_ADDRESS = StoredMessage(_("url: the host %(host)s has no address."))
# A detail of history.
CHANGED = StoredMessage(_("changed"))
# The state of the message broker.
BROKER_SILENT = StoredMessage(_("The broker has not answered yet: the oldest waits since %(time)s UTC."))
PROBLEM_WITHOUT_RELAY = StoredMessage(
    _("%(problem)s %(inactive)s"),
    {"inactive": "No watcher-relay is active: .+"},
    problem=translate_message,
    inactive=translate_message,
)
