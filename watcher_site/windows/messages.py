"""The messages of refused operations."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

NO_ZONE = StoredMessage(_("zone: there is no time zone '%(name)s'. It must be a name such as Europe/Berlin, or UTC."))
SKIPPED_TIME = StoredMessage(_("%(field)s: there is no %(time)s on %(day)s in %(zone)s: the clocks go forward then."))
PAST = StoredMessage(_("%(field)s: must not be in the past, and %(time)s is."))
TIME_RULE = StoredMessage(_("%(field)s: must be a time in ISO 8601, such as 2030-01-31T08:00:00."))
SAME_TIMES = StoredMessage(
    _("window.closes: must differ from opens. A window that closes earlier is open through midnight.")
)
DAYS_REVERSED = StoredMessage(_("window.last_day: must not be before first_day: %(last)s is before %(first)s."))
MISSING_TIME = StoredMessage(_("%(field)s: missing. A window needs both opens and closes, each a time such as 22:00."))
WEEKDAYS_RULE = StoredMessage(_("window.weekdays: must be a list of one or more of %(names)s."))
YEAR_RULE = StoredMessage(_("%(field)s: must be in a year from 1970 to %(year)s."))
FORM_RULE = StoredMessage(_("%(field)s: must be %(form)s, not %(text)s."), form=translate_message)
A_MOMENT = StoredMessage(_("a time in ISO 8601, such as 2030-01-31T22:00:00"))
A_TIME = StoredMessage(_("a time such as 22:00"))
A_DAY = StoredMessage(_("a day such as 2030-01-31"))
