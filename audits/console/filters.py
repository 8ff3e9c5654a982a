"""The filters of the console's list of audits."""

import django_filters

from audits.models import Audit
from watcher_site.console.filters import make_choices


class AuditFilters(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(choices=make_choices(Audit.State.values), empty_label="any")
    name = django_filters.CharFilter(label="Name", lookup_expr="icontains")
    goal = django_filters.CharFilter(label="Goal", field_name="goal__display_name", lookup_expr="icontains")
    strategy = django_filters.CharFilter(
        label="Strategy", field_name="strategy__display_name", lookup_expr="icontains"
    )

    class Meta:
        model = Audit
        fields: list[str] = []
