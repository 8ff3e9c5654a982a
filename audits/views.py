"""The console's pages of audits."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from audits.filters import AuditFilters
from audits.models import Audit
from audits.tables import AuditTable
from watcher_site.pages import ListPage, RecordPage, Verb


class AuditList(ListPage):
    model = Audit
    permission_required = "audits.view_audit"
    table_class = AuditTable
    filterset_class = AuditFilters
    template_name = "audits/audit_list.html"
    heading = "Audits"
    guidance = "An audit looks at the cloud and proposes an action plan. Create the first one."

    def get_queryset(self) -> QuerySet[Audit]:
        return Audit.objects.present().select_related("goal", "strategy").order_by("-pk")


class AuditPage(RecordPage):
    """One audit, with the plans that it proposed."""

    model = Audit
    permission_required = "audits.view_audit"

    def get_template_names(self) -> list[str]:
        return ["audits/_audit.html" if getattr(self.request, "htmx", False) else "audits/audit_detail.html"]

    def get_queryset(self) -> QuerySet[Audit]:
        return super().get_queryset().select_related("goal", "strategy")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        audit: Audit = self.object
        return super().get_context_data(
            plans=audit.action_plans.present().with_progress().order_by("-pk")[:20],
            moving=audit.state in {Audit.State.PENDING, Audit.State.ONGOING},
            may_delete=audit.state in audit.DELETABLE,
            **context,
        )


class AuditVerb(Verb):
    model = Audit

    def where_to(self, record: Audit, done: bool) -> str:
        return reverse("audits:detail", args=[record.uuid])


class Cancel(AuditVerb):
    permission_required = "audits.change_audit"
    verb = "cancel the audit"
    question = "Cancel this audit?"
    consequence = "It will not propose an action plan."

    def perform(self, record: Audit) -> str:
        record.cancel(f"Audit was cancelled by {self.request.user.get_username()}.")
        record.save_state()
        return "Cancelled."
