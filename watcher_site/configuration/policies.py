"""Policies that decide who may read restricted values, with Nova's names and rules."""

from collections.abc import Mapping

EVENT_DETAILS = "os-instance-actions:events:details"
ADMIN, SYSTEM_READER, PROJECT_READER = "rule:admin", "rule:system_reader", "rule:project_reader"
DEFAULTS: Mapping[str, str] = {EVENT_DETAILS: SYSTEM_READER}
NOVA = "os_compute_api:"
# The spellings of the rules in Nova's policy files of several releases.
SPELLINGS = {
    **{name: name for name in (ADMIN, SYSTEM_READER, PROJECT_READER)},
    **dict.fromkeys(("rule:admin_api", "rule:context_is_admin"), ADMIN),
    "rule:system_reader_api": SYSTEM_READER,
    **dict.fromkeys(("rule:project_reader_api", "rule:project_reader_or_admin"), PROJECT_READER),
}
