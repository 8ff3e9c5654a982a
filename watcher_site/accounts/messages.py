"""The messages of refused operations on accounts and tokens, and of failed logins, which are stored in English."""

from django.utils.formats import number_format
from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message


def localize_number(text: str) -> str:
    """Return a number with the separators of the language of the reader."""
    return number_format(int(text.replace(",", "")))


NOT_A_MEMBER = StoredMessage(_("project: %(name)s is not a member of %(project)s."))
PROJECT_LENGTH = StoredMessage(_("project: must have 1 to %(number)s characters, without blanks around them."))
NO_USER = StoredMessage(_("user: there is no user %(name)s."))
ACCOUNT_IS_DISABLED = StoredMessage(_("user: the account %(name)s is disabled."))
NOT_IN_GROUP = StoredMessage(_("group: %(name)s is in no group %(group)s."))
TOO_MANY_TOKENS = StoredMessage(_("%(name)s has %(number)s valid tokens, and cannot have more. Revoke one first."))
TOKEN_HOURS = StoredMessage(_("hours: must be above 0 and at most %(most)s (ten years), and is %(hours)s."))
TOKEN_NAME = StoredMessage(
    _("name: must have at most %(number)s printable characters, and no blanks at the beginning or the end.")
)
TOKEN_KEY_LENGTH = StoredMessage(_("key: must have at least %(number)s characters."))
NO_SUCH_KEY = StoredMessage(_("key: no valid token begins so."))
AMBIGUOUS_KEY = StoredMessage(_("key: several tokens begin so. Give more of it."))
NO_TOKEN = StoredMessage(_("token: there is no token %(key)s."))
GROUP_NOT_MIGRATED = StoredMessage(_("group: there is no group %(group)s. Run manage.py migrate first."))
EXTERNAL_PASSWORD = StoredMessage(_("%(name)s logs in at %(issuer)s, and has no password here."))
OWN_ACCOUNT = StoredMessage(_("Not allowed: another administrator must change your own account."))
MISSING_RIGHTS = StoredMessage(_("Not allowed: it concerns rights that you do not have."))
USER_NAME_TAKEN = StoredMessage(_("name: there is a user %(name)s already."))
# Failed logins.
ONE_SECOND = StoredMessage(_("1 second"))
SECONDS = StoredMessage(_("%(number)s seconds"))
ONE_MINUTE = StoredMessage(_("1 minute"))
MINUTES = StoredMessage(_("%(number)s minutes"))
LOGINS_LIMITED = StoredMessage(
    _("Too many failed logins from your address. Try again in %(duration)s."), duration=translate_message
)
LOGINS_BUSY = StoredMessage(_("Too many passwords are being verified at the moment. Try again in a second."))
LOGINS_FAILED = StoredMessage(
    _("%(number)s failed logins from %(address)s in %(duration)s."),
    {"number": r"[\d,]+"},
    number=localize_number,
    duration=translate_message,
)
LOGINS_OF_ACCOUNT_FAILED = StoredMessage(
    _("%(number)s failed logins for %(name)s from %(address)s in %(duration)s."),
    {"number": r"[\d,]+"},
    number=localize_number,
    duration=translate_message,
)
FURTHER_LOGINS_REFUSED = StoredMessage(
    _("%(summary)s Further ones are refused until %(time)s UTC."),
    {"summary": r"[\d,]+ failed logins .+?"},
    summary=translate_message,
)
