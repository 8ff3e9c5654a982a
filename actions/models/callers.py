"""The person on whose behalf an action is executed."""

from actions.models import Action
from watcher_site.request_context import CallingContext, unseal


def find_caller(action: Action) -> CallingContext:
    """Return on whose behalf an action is executed; nothing, where its plan was started without a word of that."""
    of_plan = Action.objects.filter(pk=action.pk).order_by()
    sealed = of_plan.values_list("action_plan__context", flat=True).first()
    return unseal(sealed) if sealed else CallingContext()
