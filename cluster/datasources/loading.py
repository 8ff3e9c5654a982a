"""Load samples of a file into the tables, completely or not at all."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from django.db import transaction

from cluster.datasources.sample_files import read_samples
from cluster.models import ComputeNode, Sample
from watcher_site.refusals import Invalid

BATCH = 5000
# More than this is no line of a file with samples.
LONGEST = 10_000


def load_metrics(path: Path) -> int:
    """Load a file with samples, and return how many it held. A sample that was there already gets the new value.

    Raises:
        Invalid: it cannot be read or makes no sense; the message begins with the file and the line.
    """
    nodes = dict(ComputeNode.objects.present().values_list("hostname", "uuid"))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file, transaction.atomic():
            lines = iter(lambda: file.readline(LONGEST), "")
            return insert_samples(sample for _, sample in read_samples(lines, nodes))
    except Invalid as problem:
        raise Invalid(f"{path}:{problem}") from problem
    except UnicodeDecodeError as problem:
        raise Invalid(f"{path}: is not UTF-8 text.") from problem
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise Invalid(f"{path}: cannot be read: {reason}.") from problem


@transaction.atomic
def insert_samples(samples: Iterable[Sample]) -> int:
    """Insert samples in few statements, whatever their number, and return how many they were."""
    samples, total = iter(samples), 0
    while batch := list(islice(samples, BATCH)):
        total += len(batch)
        # The last of several of one resource at one time counts, and one statement may name a row only once.
        unique = {(sample.metric, sample.time, sample.resource): sample for sample in batch}
        Sample.objects.bulk_create(
            unique.values(),
            update_conflicts=True,
            unique_fields=["metric", "time", "resource"],
            update_fields=["value"],
        )
    return total
