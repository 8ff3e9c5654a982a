"""The contents of an emulated cloud that many tests start with, read once per test process.

Reading a cloud takes more processor time than most tests. The emulator gives objects of the same names the same UUIDs.
"""

from copy import deepcopy
from datetime import timedelta

from django.utils import timezone

from cluster.drivers.base import cloud
from cluster.models import Synchronization
from cluster.operations.synchronization import write_contents
from cluster.synchronization.cloud_contents import CloudContents

READ: dict[str, CloudContents] = {}


def write_cached_contents(name: str) -> None:
    """Synchronize with the cloud, whose contents are the same for each use of this name."""
    began, holder = timezone.now(), Synchronization.claim(timedelta(0))
    assert holder
    if name not in READ:
        READ[name] = cloud().read_contents(lambda: None)
    write_contents(deepcopy(READ[name]), holder, began)
