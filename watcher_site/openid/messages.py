"""The messages of refused logins with OpenID Connect, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

LOGIN_NOT_BEGUN = StoredMessage(_("This login was not begun here, or too long ago. Try again."))
OPENID_REFUSED = StoredMessage(_("OpenID Connect: %(reason)s"), reason=translate_message)
PROVIDER_DOES_NOT_ANSWER = StoredMessage(
    _("%(provider)s does not answer. Try again later, or log in with a local account.")
)
NOT_LOGGED_IN = StoredMessage(_("You were not logged in at %(provider)s."))
NO_IDENTIFIER = StoredMessage(_("%(provider)s has no usable identifier for you."))
NO_GROUP = StoredMessage(_("None of your groups at %(provider)s gives a right here."))
LOGIN_OF_DISABLED_ACCOUNT = StoredMessage(_("Your account is disabled."))
NO_FREE_NAME = StoredMessage(_("No name is free for your account."))
LOGIN_NOT_CONFIRMED = StoredMessage(_("%(provider)s did not confirm your login. Try again."))
