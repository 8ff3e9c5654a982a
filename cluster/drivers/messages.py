"""The messages of errors of cloud operations, which are stored in English."""

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

WITHOUT_CONTENTS = StoredMessage(
    _("WATCHER_CLOUD: this cloud exists only in the tables of the site, so there is nothing to read.")
)
WITHOUT_BALANCERS = StoredMessage(_("WATCHER_CLOUD: the driver of this cloud has no load balancers."))
# Servers.
SERVER_BUSY = StoredMessage(_("Instance %(server)s is busy: %(task)s"))
HAS_RUN = StoredMessage(_("Instance %(server)s has run before: it can be rebuilt"))
OTHER_STATUS = StoredMessage(_("Instance %(server)s is %(status)s, and no longer %(expected)s"))
NOT_MIGRATABLE = StoredMessage(_("Instance %(server)s can not be migrated so while it is %(state)s"))
SERVICE_IN_USE = StoredMessage(_("Compute service of %(node)s is still in use"))
NOT_EVACUABLE = StoredMessage(_("Instance %(server)s can not be evacuated while it is %(state)s"))
NOT_RESIZABLE = StoredMessage(_("Instance %(server)s can not be resized while it is %(state)s"))
HAS_FLAVOR = StoredMessage(_("Instance %(server)s has flavor %(flavor)s already"))
DISK_TOO_SMALL = StoredMessage(_("The disk of flavor %(flavor)s is smaller than that of instance %(server)s"))
NOT_REBOOTABLE = StoredMessage(_("Instance %(server)s can not be rebooted while it is %(state)s"))
NOT_REBUILDABLE = StoredMessage(_("Instance %(server)s can not be rebuilt while it is %(state)s"))
WITHOUT_NODE = StoredMessage(_("Instance %(server)s is on no node"))
TAKEN_OUT = StoredMessage(_("Instance %(server)s was taken out of its operation %(operation)s"))
CAPACITY_NOT_PROVIDED = StoredMessage(_("No capacity was provided for instance %(server)s"))
BEING_CREATED = StoredMessage(_("An instance for %(token)s is just being created"))
WOULD_WAIT = StoredMessage(_("No host has capacity for server %(name)s, which waits for it as PENDING"))
FAILURE_RATE = StoredMessage(_("The embedded cloud failed, as it does at its EMBEDDED_CLOUD_FAILURE_RATE"))
# Compute nodes.
RUNS_SERVER = StoredMessage(_("Compute node %(node)s has 1 running server"))
RUNS_SERVERS = StoredMessage(_("Compute node %(node)s has %(number)s running servers"))
NODE_UP = StoredMessage(_("Compute node %(node)s is up: it is not fenced"))
NODE_OFF = StoredMessage(_("Compute node %(node)s is switched off"))
# The scheduler.
DESTINATION_NOT_FOUND = StoredMessage(_("Destination node %(node)s not found"))
DESTINATION_DISABLED = StoredMessage(_("Destination node %(node)s is not in enabled state"))
DESTINATION_DOWN = StoredMessage(_("Destination node %(node)s is down"))
ALREADY_THERE = StoredMessage(_("Instance %(server)s is already on %(node)s"))
UNITS = {"vcpus": _("VCPUs"), "memory": _("MB of memory"), "disk": _("GB of disk")}
"""The units of resources of a server."""
UNIT = {"unit": "|".join(UNITS.values())}
ABOVE_UNIT = StoredMessage(_("at most %(limit)s %(unit)s for one server, not %(amount)s"), UNIT, unit=gettext)
BELOW_UNIT = StoredMessage(_("at least %(limit)s %(unit)s for one server, not %(amount)s"), UNIT, unit=gettext)
BESIDE_STEPS = StoredMessage(_("%(unit)s in steps of %(step)s, not %(amount)s"), UNIT, unit=gettext)
OUTSIDE_UNITS = StoredMessage(
    _("%(node)s takes %(rule)s."), {"node": r"\S+", "rule": r"[\w ]+, not \d+"}, rule=translate_message
)
SHORTAGE = StoredMessage(
    _("%(node)s has %(free)s %(unit)s free of %(needed)s needed."),
    {"node": r"\S+", "free": r"[\d.e+]+", **UNIT},
    unit=gettext,
)
# Volumes.
VOLUME_BUSY = StoredMessage(_("Volume %(volume)s is busy: %(status)s"))
NOT_MOVABLE = StoredMessage(_("Volume %(volume)s can not be moved or retyped while it is %(status)s"))
WITHOUT_POOL = StoredMessage(_("Volume %(volume)s is in no pool"))
HAS_SNAPSHOTS = StoredMessage(_("Volume %(volume)s has snapshots, and can not leave its pool"))
ALREADY_IN_POOL = StoredMessage(_("Volume %(volume)s is already in %(pool)s"))
POOL_WITHOUT_TYPE = StoredMessage(_("Pool %(pool)s takes no volumes of type %(type)s"))
NO_STORAGE_NODE = StoredMessage(_("No storage node that could take volume %(volume)s is enabled and up"))
POOL_FULL = StoredMessage(_("Pool %(pool)s has %(free)s GB free of %(needed)s needed"))
VOLUME_TAKEN_OUT = StoredMessage(_("Volume %(volume)s was taken out of its operation %(operation)s"))
# Load balancers.
BALANCING_POOL_NOT_FOUND = StoredMessage(_("Load-balancer pool %(pool)s not found"))
MAY_BE_CONNECTED = StoredMessage(
    _("Instance %(server)s may still have connections in pool %(pool)s, which it has until %(time)s UTC to end")
)
STILL_CONNECTED = StoredMessage(
    _(
        "Instance %(server)s still has %(number)s of its connections in pool %(pool)s, which it has until %(time)s UTC"
        " to end"
    )
)
OUTSIDE_RANGE = StoredMessage(
    _("%(option)s: %(value)s is not in the range from %(minimum)s to %(maximum)s"),
    {"option": "port|weight|grace_period"},
)
OTHER_PORT = StoredMessage(_("Instance %(server)s is in pool %(pool)s with port %(port)s already"))


def describe_running(node: str, number: int) -> str:
    """Return the message about running servers on a compute node."""
    return RUNS_SERVER.fill(node=node) if number == 1 else RUNS_SERVERS.fill(node=node, number=number)


# Refused values.
NOT_FENCED = StoredMessage(_("down, but not known to be off: servers may still run there, and would run twice"))
