"""The filters of the console's list of action plans."""

import django_filters

from plans.models import ActionPlan
from watcher_site.console.filters import make_choices


class ActionPlanFilters(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(choices=make_choices(ActionPlan.State.values), empty_label="any")
    strategy = django_filters.CharFilter(
        label="Strategy", field_name="strategy__display_name", lookup_expr="icontains"
    )
    audit = django_filters.CharFilter(label="Audit", field_name="audit__name", lookup_expr="icontains")

    class Meta:
        model = ActionPlan
        fields: list[str] = []
