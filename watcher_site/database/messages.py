"""The messages of operations on rows that were deleted, or whose state forbids it; the API has them in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage

RECORD_NOT_FOUND = StoredMessage(_("%(kind)s %(uuid)s could not be found"))
NOT_DELETABLE = StoredMessage(_("Couldn't delete when state is '%(state)s'."))
