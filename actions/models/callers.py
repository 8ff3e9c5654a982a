"""The person on whose behalf an action is executed."""

from actions.models import Action
from watcher_site.request_context import CallingContext, unseal


def find_caller(action: Action) -> CallingContext:
    """Return on whose behalf an action is executed; nothing, where its plan was started without a word of that."""
    plans = Action._meta.get_field("action_plan").related_model.objects
    sealed = plans.filter(pk=action.action_plan_id).values_list("context", flat=True).first()
    return unseal(sealed) if sealed else CallingContext()
