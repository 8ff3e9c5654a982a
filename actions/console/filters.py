"""The filters of the console's list of actions."""

import django_filters
from django.db.models import QuerySet

from actions.models import Action
from watcher_site.console.filters import make_choices


class ActionFilters(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(choices=make_choices(Action.State.values), empty_label="any")
    action_type = django_filters.CharFilter(label="Type", lookup_expr="iexact")
    target = django_filters.CharFilter(label="Target", method="with_target")
    action_plan = django_filters.UUIDFilter(label="Plan UUID", field_name="action_plan__uuid")

    class Meta:
        model = Action
        fields: list[str] = []

    def with_target(self, actions: QuerySet[Action], _: str, target: str) -> QuerySet[Action]:
        return actions.filter(target=target)
