"""The messages of action plans in the language of the reader, with the lists of actions in summaries."""

import re

from actions.event_details import generic_plan_message
from actions.messages import PHASES, phase_label
from actions.models import NOT_EXECUTED
from plans.messages import AND_MORE
from plans.models import ActionPlan
from plans.models.summaries import SKIPPED
from watcher_site.messages import UUIDS, translate_message

# The beginnings of sentences and of actions in the message. Texts of users could contain them, but not change others.
SENTENCE_BREAK = re.compile(r" (?=\d+ of \d+|\d+ actions? reverted|One or more actions )")
LISTING = re.compile(r"(?P<lead>\d+ of \d+[a-z ]*)(?:: (?P<list>.*))?\.", re.DOTALL)
MENTION_BREAK = re.compile(f", (?={UUIDS.pattern})")
MENTION = re.compile(f"(?P<name>{UUIDS.pattern}(?: by .+?)?)(?: \\((?P<reason>.*)\\))?", re.DOTALL)


def find_message(plan: ActionPlan, sees_details: bool) -> str:
    """Return the stored message of a plan, without reasons of failures for users who may not read them."""
    message = plan.status_message if sees_details else generic_plan_message(plan.state, plan.status_message)
    return message or ""


def show_message(message: str) -> str:
    """Return a stored message in the language of the reader, beginning with the counts."""
    return translate_summary(lead_with_counts(message))


def lead_with_counts(message: str) -> str:
    """Return the message of an ended plan for the console: counts first, without the sentence that clients match."""
    rest = message.removeprefix(SKIPPED).lstrip()
    return re.sub(r"^(\d+ of \d+):", r"\1 skipped:", rest) if rest else message


def translate_summary(message: str) -> str:
    """Return the message of a plan, which may be a summary, in the language of the reader."""
    return " ".join(translate_sentence(sentence) for sentence in SENTENCE_BREAK.split(message))


def translate_sentence(sentence: str) -> str:
    if not (match := LISTING.fullmatch(sentence)):
        return translate_message(sentence)
    lead, listed = translate_message(match["lead"]), match["list"]
    return f"{lead}: {translate_list(listed)}." if listed else f"{lead}."


def translate_list(text: str) -> str:
    if values := AND_MORE.read(text):
        return AND_MORE.translate({**values, "list": translate_list(values["list"])})
    return ", ".join(map(translate_mention, MENTION_BREAK.split(text)))


def translate_mention(text: str) -> str:
    """Return an action in a list, in the language of the reader, except for the reason of a user."""
    if not (match := MENTION.fullmatch(text)):
        return text
    name, reason = match["name"], match["reason"]
    is_by_user = " " in name
    if reason is None:
        return translate_message(name)
    return f"{translate_message(name)} ({reason if is_by_user else translate_reason(reason)})"


def translate_reason(reason: str) -> str:
    """Return a reason, from which `make_mention` removed parts, in the language of the reader."""
    phase, separator, rest = reason.partition(": ")
    if separator and phase in PHASES:
        return f"{phase_label(phase)}: {translate_reason(rest)}"
    # A message without its end or its beginning.
    for message in (reason, f"{reason}.", f"{NOT_EXECUTED} {reason}."):
        if (shown := translate_message(message)) != message:
            return shown if message == reason else shown.removesuffix(".")
    return reason
