"""The messages of errors of the cloud, which are stored in English."""

from django.utils.translation import gettext
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
# Refused operations.
NO_POLICY_TYPE = StoredMessage(_("type: there is no policy type %(name)s; there are %(names)s."))
POLICY_FIXED = StoredMessage(_("%(field)s: cannot be changed; the name can."))
RECORD_NAME_TAKEN = StoredMessage(_("name: another %(kind)s is called %(name)s."), kind=gettext)
MULTIPLE_RESULTS = StoredMessage(
    _("Multiple results found matching the query criteria '%(name)s'. Please be more specific.")
)
PROFILE_NAME = StoredMessage(_("name: must have 1 to %(number)s characters."))
NO_FLAVOR_OF_SPEC = StoredMessage(_("spec: flavor: the cloud has no flavor %(name)s."))
NO_ZONE_OF_SPEC = StoredMessage(_("spec: availability_zone: the cloud has no availability zone %(name)s."))
USER_DATA_LENGTH = StoredMessage(_("user_data: must not have more than %(number)s bytes in base64."))
NETWORKS_RULE = StoredMessage(_("networks: must be a list, or one of %(names)s."))
TAG_RULE = StoredMessage(_("tags.%(number)s: must contain neither a comma nor a slash."))
NETWORK_OR_PORT = StoredMessage(_("must have either network or port."))
IP_OF_PORT = StoredMessage(_("fixed_ip: is for a network; a port has its own addresses."))
NO_IP = StoredMessage(_("fixed_ip: %(text)s is not an IP address."))
SOURCE_RULE = StoredMessage(_("must have one of source_type, %(names)s."))
UUID_OF_SOURCE = StoredMessage(_("uuid: is for source_type; %(name)s names the source."))
UUID_REQUIRED = StoredMessage(_("uuid: is required unless source_type is blank."))
LIMIT_RULE = StoredMessage(_("%(field)s: must be a whole number from -1, for unlimited, to %(most)s."))
METADATA_QUOTA = StoredMessage(
    _("Quota exceeded for metadata entries of a server: requested %(number)s of %(limit)s.")
)
FOREIGN_PROJECT = StoredMessage(
    _(
        "This cloud creates servers in the site's own project %(site_project)s, and in project %(project)s only as a"
        " user of it, who has to request them with a token of Keystone for this project"
    )
)
CLOUD_NOT_READ_YET = StoredMessage(_("The cloud has not been read yet: run sync_cluster"))
NAME_NO_TEXT = StoredMessage(_("template: line %(line)s: a name must be a text."))
NAME_TWICE = StoredMessage(_("template: line %(line)s: %(name)s is given twice."))
TEMPLATE_SIZE = StoredMessage(_("template: must not have more than %(number)s bytes."))
FORBIDDEN_CHARACTERS = StoredMessage(
    _("template: is neither JSON nor YAML: it contains characters that neither allows.")
)
YAML_ANCHORS = StoredMessage(_("template: line %(line)s: anchors and aliases are not taken."))
YAML_TAGS = StoredMessage(_("template: line %(line)s: tags are not taken."))
YAML_DOCUMENTS = StoredMessage(_("template: line %(line)s: there must be one document."))
NESTED_TOO_DEEPLY = StoredMessage(_("template: must not be nested deeper than %(number)s levels."))
TEMPLATE_EMPTY = StoredMessage(_("template: is empty."))
TEMPLATE_RESOURCES = StoredMessage(
    _(
        "template: resources: there would be %(number)s, with those in stacks and groups; at most"
        " %(limit)s are allowed."
    )
)
GROUPS_TOO_DEEP = StoredMessage(_("stacks and groups must not be nested deeper than %(number)s levels."))
ABOVE_MAX = StoredMessage(_("%(size)s is above the max_size of %(most)s."))
BELOW_MIN = StoredMessage(_("%(size)s is below the min_size of %(least)s."))
NO_RESOURCE = StoredMessage(_("there is no resource %(name)s."))
CYCLE = StoredMessage(_("%(path)s is a cycle."))
INVALID_NAME = StoredMessage(_("%(name)s is not a valid name: %(rule)s"), rule=translate_message)
GIVEN_TWICE = StoredMessage(_("is given twice."))
NEITHER_FORMAT_AT = StoredMessage(_("template: line %(line)s: is neither JSON nor YAML: %(reason)s."))
NEITHER_FORMAT = StoredMessage(_("template: is neither JSON nor YAML: %(reason)s."))
NOT_IN_CLOUD = StoredMessage(_("the cloud has no %(kind)s %(name)s."), {"kind": r"\w+"})
NAME_OF_RESOURCE = StoredMessage(
    _("1 to %(most)s letters, digits, _, - and ., and none of the last two at the beginning")
)
NAME_OF_STACK = StoredMessage(_("1 to %(most)s letters, digits, _, - and ., the first of them a letter"))
ONE_NODE = StoredMessage(_("1 node"))
NODES = StoredMessage(_("%(number)s nodes"))
ONE_CLUSTER = StoredMessage(_("1 cluster"))
CLUSTERS = StoredMessage(_("%(number)s clusters"))
IN_USE = StoredMessage(_("%(kind)s %(uuid)s is in use by %(users)s."), kind=gettext, users=translate_message)
PROJECT_QUOTA = StoredMessage(
    _(
        "Quota exceeded for %(name)s of project %(project)s: requested %(number)s, but already used %(used)s of"
        " %(limit)s."
    ),
    name=gettext,
)
QUOTA = StoredMessage(
    _("Quota exceeded for %(name)s: requested %(number)s, but already used %(used)s of %(limit)s."), name=gettext
)
BROKER_REFUSES_ACCESS = StoredMessage(_("The broker refuses the login or the queue."))
