"""The messages of interrupted actions and of predictions, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message


def translate_list(text: str) -> str:
    return ", ".join(map(translate_message, text.split(", ")))


# Interruptions.
LOST_PROCESSES = StoredMessage(_("%(number)s processes were lost while they executed it"))
INTERRUPTED = StoredMessage(_("It was interrupted %(number)s times"))
INTERRUPTION = {"interruption": r"\d+ processes were lost while they executed it|It was interrupted \d+ times"}
NOT_DONE = StoredMessage(
    _("%(interruption)s. It was not done, and is not tried again."), INTERRUPTION, interruption=translate_message
)
UNKNOWN = StoredMessage(_("%(interruption)s. Its outcome is not known."), INTERRUPTION, interruption=translate_message)
REVERT_GIVEN_UP_AFTER = StoredMessage(
    _("%(interruption)s. It is not tried again. %(reason)s"),
    INTERRUPTION,
    interruption=translate_message,
    reason=translate_message,
)
REVERT_GIVEN_UP = StoredMessage(
    _("%(interruption)s. It is not tried again."), INTERRUPTION, interruption=translate_message
)
BUSY_SERVER = StoredMessage(_("instance %(uuid)s"))
BUSY_VOLUME = StoredMessage(_("volume %(uuid)s"))
ADVICE = StoredMessage(
    _("Check %(objects)s in the cloud, and reset its state if it is still busy."), objects=translate_list
)
WITH_ADVICE = StoredMessage(
    _("%(sentence)s %(advice)s"),
    {"sentence": r".+\.", "advice": r"Check (?:instance|volume) .+ if it is still busy\."},
    sentence=translate_message,
    advice=translate_message,
)
UNRECORDED = StoredMessage(_("Its outcome was not recorded."))
NOT_REVERTED = StoredMessage(_("The action %(uuid)s could not be reverted."))
# Derived actions.
WAITS_FOR_NEXT = StoredMessage(
    _("%(message)s %(further)s"),
    {"message": r"Action waits for (?:the action|\d+ actions) that it derived\.", "further": "next: .+"},
    message=translate_message,
    further=translate_message,
)
# Predictions.
DERIVED_UNPREDICTABLE = StoredMessage(
    _("%(number)s of the actions that it derives cannot be predicted: %(name)s: %(reason)s"), reason=translate_message
)
DRY_RUN_FAILED = StoredMessage(_("Its result cannot be predicted: the dry run failed with %(error)s."))
WAITS_UNPREDICTABLY = StoredMessage(
    _("It waits for actions that it derived. Its result after their end cannot be predicted.")
)
WOULD_WAIT_UNPREDICTABLY = StoredMessage(
    _("It waits for actions that it derives. Its result after their end cannot be predicted.")
)
DERIVES_UNPREDICTABLY = StoredMessage(_("It derives actions, whose results cannot be predicted."))
BEING_ABORTED = StoredMessage(_("It is being aborted."))
WOULD_BE_DEFERRED = StoredMessage(_("It would be tried again later: %(reason)s"), reason=translate_message)
