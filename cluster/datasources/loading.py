"""Loading of samples from a file (JSON lines, or CSV with a header) in one transaction."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction

from cluster.datasources.base import METRICS
from cluster.models import ComputeNode, Sample
from watcher_site.refusals import Invalid

FIELDS = ("metric", "resource", "time", "value")

BATCH = 5000
# The maximum length of a line.
MAX_LINE = 10_000


def load_metrics(path: Path) -> int:
    """Load a file with samples, and return their number. Existing samples get the new value.

    Raises:
        Invalid: the file cannot be read or is invalid; the message begins with the file and the line.
    """
    nodes = dict(ComputeNode.objects.present().values_list("hostname", "uuid"))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file, transaction.atomic():
            lines = iter(lambda: file.readline(MAX_LINE), "")
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
    """Insert samples in batches, and return their number."""
    samples, total = iter(samples), 0
    while batch := list(islice(samples, BATCH)):
        total += len(batch)
        # Of several samples with the same key, the last one counts. A statement may contain a key only once.
        unique = {(sample.metric, sample.time, sample.resource): sample for sample in batch}
        Sample.objects.bulk_create(
            unique.values(),
            update_conflicts=True,
            unique_fields=["metric", "time", "resource"],
            update_fields=["value"],
        )
    return total


def read_samples(lines: Iterable[str], nodes: Mapping[str, UUID]) -> Iterator[tuple[int, Sample]]:
    """Yield the samples with their line numbers, which begin with 1.

    Args:
        nodes: the UUIDs of compute nodes by host name, by which lines may refer to them.

    Raises:
        Invalid: a line is invalid; the message begins with its number.
    """
    numbered = enumerate(lines, 1)
    first = next(((number, line) for number, line in numbered if line.strip()), None)
    if first is None:
        return
    number, line = first
    head = None if line.lstrip().startswith("{") else head_of(number, line)
    if head is None:
        yield number, sample_of(number, members_of(number, line, None), nodes)
    for number, line in numbered:
        if line.strip():
            yield number, sample_of(number, members_of(number, line, head), nodes)


def head_of(number: int, line: str) -> list[str]:
    head = next(csv.reader([line.strip()]))
    if sorted(head) != sorted(FIELDS):
        raise Invalid(f"{number}: must be a JSON object, or the head {','.join(FIELDS)}.")
    return head


def members_of(number: int, line: str, head: list[str] | None) -> Mapping[str, Any]:
    if head is not None:
        cells = next(csv.reader([line.rstrip("\r\n")]))
        if len(cells) != len(head):
            raise Invalid(f"{number}: has {len(cells)} cells, and the head {len(head)}.")
        return dict(zip(head, cells, strict=True))
    try:
        members = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"{number}: is not JSON.") from problem
    if not isinstance(members, dict) or set(members) != set(FIELDS):
        raise Invalid(f"{number}: must be an object with {', '.join(FIELDS)}.")
    return members


def sample_of(number: int, members: Mapping[str, Any], nodes: Mapping[str, UUID]) -> Sample:
    if not isinstance(members["metric"], str) or members["metric"] not in METRICS:
        raise Invalid(f"{number}: metric: must be one of {', '.join(METRICS)}.")
    return Sample(
        metric=members["metric"],
        resource=resource_of(number, members["resource"], nodes),
        time=time_of(number, members["time"]),
        value=value_of(number, members["value"]),
    )


def resource_of(number: int, text: Any, nodes: Mapping[str, UUID]) -> UUID:
    if isinstance(text, str) and text in nodes:
        return nodes[text]
    try:
        return UUID(text)
    except (ValueError, TypeError, AttributeError) as problem:
        raise Invalid(f"{number}: resource: must be a UUID, or the host name of a compute node.") from problem


def time_of(number: int, value: Any) -> datetime:
    """Return a time in ISO 8601, UTC without an offset, or in seconds since 1970."""
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            time = datetime.fromisoformat(value)
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
        if not isinstance(value, bool):
            return datetime.fromtimestamp(float(value), UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        pass
    raise Invalid(f"{number}: time: must be ISO 8601, or seconds since 1970.")


def value_of(number: int, value: Any) -> float:
    try:
        parsed = float("nan") if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        parsed = float("nan")
    if not isfinite(parsed):
        raise Invalid(f"{number}: value: must be a finite number.")
    return parsed
