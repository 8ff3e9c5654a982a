"""The gauges of audits that have not ended."""

from collections.abc import Iterator

from django.db.models import Count, Min
from django.db.models.functions import Coalesce
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.registry import Collector

from audits.models import Audit
from watcher_site.monitoring.definitions import table_gauge

AUDITS = table_gauge("watcher_audits", "Audits that have not ended, by their type and state", "audit_type", "state")
DUE = table_gauge("watcher_audits_due", "Audits with a due run that no decision engine has begun")
OLDEST_DUE = table_gauge(
    "watcher_audits_oldest_due_seconds", "Seconds since the oldest of these runs became due; 0 without any"
)


class AuditGauges(Collector):
    """The gauges of this app, in two queries."""

    def collect(self) -> Iterator[Metric]:
        states = [state for state in Audit.State if state not in Audit.FINAL]
        rows = Audit.objects.present().filter(state__in=states).order_by().values_list("audit_type", "state")
        numbers = {(audit_type, state): number for audit_type, state, number in rows.annotate(Count("pk"))}
        pairs = [(str(audit_type), str(state)) for audit_type in Audit.Type for state in states]
        yield AUDITS.of({pair: numbers.get(pair, 0) for pair in pairs})
        now = timezone.now()
        due = Audit.objects.waiting(now).order_by()
        waiting = due.aggregate(number=Count("pk"), since=Min(Coalesce("next_run_time", "created_at")))
        yield DUE.single(waiting["number"])
        yield OLDEST_DUE.single(max(0.0, (now - waiting["since"]).total_seconds()) if waiting["since"] else 0.0)
