"""The messages of errors of OpenStack clouds, with the reasons that the services give, which are stored in English.

Processes without openstacksdk show them as well, so they are not in the package of the driver.
"""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

# Operations that failed or did not end.
ENDED_OPERATION = {
    "ended": "(?:[A-Z][a-z]+ing|What was under way on) (?:the migration of )?(?:instance|volume|compute node) .+?"
}
OPERATION_FAILED_BECAUSE = StoredMessage(
    _("%(ended)s failed: %(reason)s"), ENDED_OPERATION, ended=translate_message, reason=translate_message
)
OPERATION_FAILED = StoredMessage(_("%(ended)s failed"), ENDED_OPERATION, ended=translate_message)
SECONDS = {"seconds": r"[\d.e+]+"}
NOT_OVER_BECAUSE = StoredMessage(
    _("%(ended)s was not over after %(seconds)s seconds, and is no longer waited for (%(reason)s)"),
    {**ENDED_OPERATION, **SECONDS},
    ended=translate_message,
    reason=translate_message,
)
NOT_OVER = StoredMessage(
    _("%(ended)s was not over after %(seconds)s seconds, and is no longer waited for"),
    {**ENDED_OPERATION, **SECONDS},
    ended=translate_message,
)
SERVICE_DOWN = StoredMessage(
    _("Migrating instance %(server)s is no longer waited for: nova-compute service %(host)s is down")
)
# Operations.
CREATING = StoredMessage(_("Creating instance %(server)s"))
DELETING = StoredMessage(_("Deleting instance %(server)s"))
REBOOTING = StoredMessage(_("Rebooting instance %(server)s"))
REBUILDING = StoredMessage(_("Rebuilding instance %(server)s"))
MIGRATING = StoredMessage(_("Migrating instance %(server)s"))
ABORTING_MIGRATION = StoredMessage(_("Aborting the migration of instance %(server)s"))
EVACUATING = StoredMessage(_("Evacuating instance %(server)s"))
STOPPING = StoredMessage(_("Stopping instance %(server)s"))
STARTING = StoredMessage(_("Starting instance %(server)s"))
RESIZING = StoredMessage(_("Resizing instance %(server)s"))
SERVER_UNDER_WAY = StoredMessage(_("What was under way on instance %(server)s"))
MIGRATING_VOLUME = StoredMessage(_("Migrating volume %(volume)s"))
RETYPING = StoredMessage(_("Retyping volume %(volume)s"))
VOLUME_UNDER_WAY = StoredMessage(_("What was under way on volume %(volume)s"))
ADDING_TO_POOL = StoredMessage(_("Adding instance %(server)s to pool %(pool)s"))
DRAINING = StoredMessage(_("Draining instance %(server)s in pool %(pool)s"))
REMOVING_FROM_POOL = StoredMessage(_("Taking instance %(server)s out of pool %(pool)s"))
SWITCHING = StoredMessage(_("Switching compute node %(node)s %(power)s"))
# Results of operations that differ from the request, with the reason of the cloud, if it gives one.
STILL_ON_HOST = StoredMessage(_("Instance %(server)s is still on %(host)s after its migration"))
ON_OTHER_HOST = StoredMessage(_("Instance %(server)s went to %(host)s, not to %(destination)s"))
OTHER_FLAVOR = StoredMessage(_("Instance %(server)s has flavor %(flavor)s after its resize"))
IN_STATUS = StoredMessage(_("Instance %(server)s is in status %(status)s"), {"status": "[A-Z_]+"})
OTHER_RESULT = StoredMessage(
    _("%(outcome)s: %(reason)s"),
    {
        "outcome": r"Deleting instance \S+|Instance \S+ (?:is still on \S+ after its migration|went to \S+, not to \S+"
        r"|has flavor .+? after its resize|is in status [A-Z_]+)"
    },
    outcome=translate_message,
)
IT_IS_IN_STATUS = StoredMessage(_("it is in status %(status)s"), {"status": "[A-Z_]+"})
IT_IS_ON_HOST = StoredMessage(_("it is on %(host)s in status %(status)s"), {"status": "[A-Z_]+"})
NOT_SWITCHED = StoredMessage(_("Compute node %(node)s did not go %(power)s: %(reason)s"), reason=translate_message)
MAAS_POWER_ERROR = StoredMessage(_("MAAS reports an error of its power"))
STILL_IN_POOL_BY_CINDER = StoredMessage(
    _("Volume %(volume)s is still in %(pool)s after its migration: Cinder calls it an error")
)
STILL_IN_POOL = StoredMessage(_("Volume %(volume)s is still in %(pool)s after its migration"))
OTHER_TYPE_BY_CINDER = StoredMessage(
    _("Volume %(volume)s has type %(type)s after its retype: Cinder calls it an error")
)
OTHER_TYPE = StoredMessage(_("Volume %(volume)s has type %(type)s after its retype"))
MEMBER_NOT_PROVISIONED = StoredMessage(_("Octavia could not provision it"))
MEMBER_NOT_CHANGED = StoredMessage(_("Octavia could not change the member"))
MEMBER_NOT_DELETED = StoredMessage(_("Octavia could not delete the member"))
# Refused requests.
SERVICE_MISSING = StoredMessage(_("The cloud has no %(service)s: its catalog has no endpoint of type %(type)s"))
NOVA_TOO_OLD = StoredMessage(_("Nova must speak microversion %(version)s or later"))
UNKNOWN_TO_CLOUD = StoredMessage(_("The cloud does not know it: %(reason)s"))
CREDENTIALS_REJECTED = StoredMessage(_("The cloud rejects the credentials of the site: %(reason)s"))
NO_ANSWER = StoredMessage(_("The cloud does not answer: %(reason)s"))
UNUSABLE_CONFIGURATION = StoredMessage(_("OS_CLOUD and clouds.yaml do not define a usable cloud: %(reason)s"))
NOT_QUERIED = StoredMessage(_("The cloud cannot be queried: %(reason)s"))
INVALID_RESPONSE = StoredMessage(_("The cloud's response is invalid: %(reason)s"))
QUOTA_FORBIDS = StoredMessage(_("The quota of the project does not allow it: %(reason)s"))
PERMISSION_DENIED = StoredMessage(_("The cloud denies the site the permission: %(reason)s"))
ANSWERED_WITH_STATUS = StoredMessage(_("The cloud answered with status %(number)s at %(place)s: %(reason)s"))
LIST_CHANGED_BECAUSE = StoredMessage(_("A list of the cloud changed while it was read: %(reason)s"))
LIST_CHANGED = StoredMessage(_("A list of the cloud changed while it was read"))
REFUSED_BY_CLOUD = StoredMessage(_("The cloud refused it: %(reason)s"))
OTHER_OWNER = StoredMessage(
    _(
        "Another server in the place of instance %(server)s would not belong to its owner: user %(user)s has not let"
        " the site create servers in project %(project)s"
    )
)
OTHER_KEY_PAIR = StoredMessage(_("The key pair %(key)s of instance %(server)s belongs to another user"))
HAS_VOLUMES = StoredMessage(_("Instance %(server)s has volumes: Nova does not tell how to create it again"))
HOST_NOT_CHOSEN = StoredMessage(
    _(
        "Nova lets the site choose no host for servers of project %(project)s: have them kept apart, or together, by a"
        " server group (scheduler_hints) instead of the policy senlin.policy.affinity"
    )
)
BOOTS_FROM_VOLUME = StoredMessage(
    _("Instance %(server)s boots from a volume: name the image from which to rebuild it")
)
NEVER_BUILT = StoredMessage(_("Instance %(server)s was never built: it can only be created again"))
NETWORK_AMBIGUOUS = StoredMessage(_("The project has more than one network %(network)s"))
NO_NETWORK = StoredMessage(_("The project has no network %(network)s"))
NOT_IN_PROJECT = StoredMessage(
    _("%(path)s: The project %(project)s has no %(type)s %(key)s"),
    {
        "path": r"[\w.]+",
        "type": "flavor|image|network|port|security group|server group|snapshot|volume type|volume",
    },
)
INVALID_IMAGE_DEVICES = StoredMessage(
    _("%(path)s: block_device_mapping of image %(image)s is not a list of objects"), {"path": r"[\w.]+"}
)
BALANCER_BROKEN = StoredMessage(_("Load balancer %(name)s is in provisioning status ERROR"))
SUBNET_NOT_FOUND = StoredMessage(_("Subnet %(subnet)s not found"))
NO_ADDRESS = StoredMessage(_("Instance %(server)s has no address on subnet %(subnet)s"))
TRUST_REFUSED = StoredMessage(
    _(
        "The site may no longer create servers as the user who requested this: Keystone refuses the trust"
        " (%(reason)s). A user of the project has to request it again, with a token of Keystone"
    )
)
TRUST_WITHOUT_PASSWORD = StoredMessage(
    _(
        "Servers are created in other projects than the site's only if clouds.yaml has a user name and a password; its"
        " auth_type is %(type)s"
    )
)
# MAAS.
MAAS_UNEXPECTED_ANSWER = StoredMessage(
    _("MAAS does not answer as its API does: %(expected)s is expected."),
    {"expected": "a power state|JSON|a list of machines"},
    expected=translate_message,
)
POWER_STATE = StoredMessage(_("a power state"))
MACHINES = StoredMessage(_("a list of machines"))
MAAS_UNTRUSTED = StoredMessage(_("MAAS is not trusted: set WATCHER_MAAS_CAFILE"))
MAAS_NO_ANSWER = StoredMessage(_("MAAS does not answer: %(reason)s"))
MAAS_REFUSES_KEY = StoredMessage(_("MAAS refuses WATCHER_MAAS_API_KEY%(detail)s"), {"detail": "(?:: .+)?"})
MAAS_DENIES_PERMISSION = StoredMessage(_("MAAS denies the site the permission%(detail)s"), {"detail": "(?:: .+)?"})
MAAS_ANSWERED = StoredMessage(_("MAAS answered with status %(number)s%(detail)s"), {"detail": "(?:: .+)?"})
NOT_MAAS = StoredMessage(
    _("WATCHER_MAAS_URL does not lead to MAAS, or the machine is gone: status %(number)s%(detail)s"),
    {"detail": "(?:: .+)?"},
)
REFUSED_BY_MAAS = StoredMessage(_("MAAS refused it%(detail)s"), {"detail": "(?:: .+)?"})
ONE_MACHINE = StoredMessage(_("Compute nodes %(node)s and %(other)s may both be the machine %(machine)s of MAAS"))
SEVERAL_MACHINES = StoredMessage(_("Several machines of MAAS may be compute node %(node)s: %(machines)s"))
