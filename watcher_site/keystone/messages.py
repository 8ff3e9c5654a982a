"""The messages of refused logins with Keystone, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

KEYSTONE_DOES_NOT_ANSWER = StoredMessage(_("Keystone does not answer. Try again later."))
KEYSTONE_REFUSED_PASSWORD = StoredMessage(_("Keystone refused the user name, the password or the domain."))
KEYSTONE_REFUSED_TOKEN = StoredMessage(_("Keystone refused the token. Log in again."))
SECOND_FACTOR_REQUIRED = StoredMessage(_("Keystone requires a second factor, which this form does not offer."))
NO_SCOPE = StoredMessage(_("Your account has no role in any project nor in the system."))
NO_RIGHTS = StoredMessage(
    _("None of your roles gives a right here in this scope: %(scope)s."), scope=translate_message
)
PROJECT_SCOPE = StoredMessage(_("Project %(name)s"))
