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
