"""The messages of errors of the cloud, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

SERVER_NOT_FOUND = StoredMessage(_("Instance %(name)s not found"))
SERVICE_NOT_FOUND = StoredMessage(_("nova-compute service %(name)s not found"))
NODE_NOT_FOUND = StoredMessage(_("Compute node %(name)s not found"))
FLAVOR_NOT_FOUND = StoredMessage(_("Flavor %(name)s not found"))
VOLUME_TYPE_NOT_FOUND = StoredMessage(_("Volume type %(name)s not found"))
VOLUME_NOT_FOUND = StoredMessage(_("Volume %(name)s not found"))
POOL_NOT_FOUND = StoredMessage(_("Pool %(name)s not found"))
NOT_ENOUGH_HOSTS = StoredMessage(_("There are not enough hosts available."))
NO_VALID_HOST = StoredMessage(_("No valid host was found. %(reason)s"), reason=translate_message)
WAITING_FOR_CAPACITY = StoredMessage(_("Instance %(name)s waits for capacity"))
