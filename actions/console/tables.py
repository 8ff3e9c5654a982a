"""The tables of actions: the console's list, and the one on a plan's page."""

from typing import Any

import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from actions.console.descriptions import manner
from actions.event_details import generic_message, sees_details
from actions.models import Action
from actions.models.naming import resource
from actions.models.refusals import Operation, allowed_signals, is_allowed
from watcher_site.console.columns import TABLE_ATTRIBUTES, StateColumn, TimeColumn, UUIDColumn
from watcher_site.messages import cut
from watcher_site.templatetags.console import short

SHOWN_PARENTS = 2
# The length of a resource's name that leaves space for the other columns.
LENGTH = 60
DERIVED = format_html(
    ' <span class="secondary" title="{}">{}</span>',
    "created by another action, which waits for it while it runs",
    "derived",
)


def cell(name: str) -> dict[str, dict[str, str]]:
    """Name a column's cells, for the style sheet to put them elsewhere on a narrow screen."""
    return {"td": {"class": name}}


class ResourceColumn(tables.Column):
    """The object and the parameters of an action, with its message below."""

    def __init__(self, **options: Any) -> None:
        super().__init__(accessor="input_parameters", verbose_name="resource", orderable=False, **options)

    def render(self, value: dict[str, Any], record: Action, table: Any) -> SafeString:
        return format_html("{}{}", described(record), said(record, sees_details(table.request.user)))


def described(action: Action) -> SafeString:
    """Return what an action acts on, and how."""
    name, how = cut(resource(action.input_parameters), LENGTH), manner(action)
    return format_html('{} <span class="manner">{}</span>', name if name or how else "—", how)


def linked_type(action: Action) -> SafeString:
    """Return the type of an action, the beginning of its UUID with a link to its page, and whether it was derived."""
    return format_html(
        '{} <a class="uuid" href="{}" title="{}">{}</a>{}',
        action.action_type,
        reverse("actions:detail", args=[action.uuid]),
        action.uuid,
        short(action.uuid),
        DERIVED if action.derived_from_id else "",
    )


def said(action: Action, details: bool) -> SafeString | str:
    """Return the message of an action, and who skipped it; or the signal that it has not honoured yet.

    Args:
        details: whether the message may say why it failed.
    """
    if action.control:
        return format_html('<div class="message said">{} takes effect at the next checkpoint.</div>', action.control)
    if not action.status_message:
        return ""
    by = format_html(' <span class="secondary">({})</span>', action.skipped_by) if action.skipped_by else ""
    message = action.status_message if details else generic_message(action.state, action.status_message)
    return format_html('<div class="message said">{}{}</div>', message, by)


class ActionTable(tables.Table):
    state = StateColumn()
    uuid = UUIDColumn("actions:detail", verbose_name="action", orderable=False)
    action_type = tables.Column(verbose_name="type")
    resource = ResourceColumn()
    action_plan = UUIDColumn("plans:detail", accessor="action_plan__uuid", verbose_name="plan", order_by="action_plan")
    updated_at = TimeColumn(accessor="updated_at", verbose_name="updated")

    class Meta:
        model = Action
        fields = ("state", "uuid", "action_type", "resource", "action_plan", "updated_at")
        attrs = TABLE_ATTRIBUTES


class PlanActionTable(tables.Table):
    """The actions of one plan; where the reader may skip, with a box and a button for each pending one."""

    choose = tables.Column(
        empty_values=(),
        orderable=False,
        attrs=cell("choose"),
        verbose_name=format_html(
            '<input type="checkbox" class="form-check-input" id="choose-all" data-choose-all>'
            ' <label for="choose-all"><span class="visually-hidden">{}</span>{}</label>',
            "Select ",
            "all",
        ),
    )
    state = StateColumn(attrs=cell("state-cell"))
    action_type = tables.Column(verbose_name="type", attrs=cell("type"))
    resource = ResourceColumn(attrs=cell("resource"))
    parents = tables.Column(
        accessor="first_parents", verbose_name="waits for", orderable=False, empty_values=(), attrs=cell("parents")
    )
    skip = tables.Column(
        empty_values=(),
        orderable=False,
        verbose_name=format_html('<span class="visually-hidden">{}</span>', "Skip"),
        attrs=cell("skip"),
    )

    class Meta:
        model = Action
        fields = ("choose", "state", "action_type", "resource", "parents", "skip", "signals")
        attrs = {"class": f"{TABLE_ATTRIBUTES['class']} actions"}
        row_attrs = {"id": lambda record: f"action-{short(record.uuid)}"}

    signals = tables.Column(
        empty_values=(),
        orderable=False,
        verbose_name=format_html('<span class="visually-hidden">{}</span>', "Suspend, resume or cancel"),
        attrs=cell("skip"),
    )

    def __init__(self, *arguments: Any, may_skip: bool, may_signal: bool = False, **options: Any) -> None:
        left_out = [*(() if may_skip else ("choose", "skip")), *(() if may_signal else ("signals",))]
        super().__init__(*arguments, exclude=left_out, **options)

    def render_action_type(self, value: str, record: Action) -> SafeString:
        return linked_type(record)

    def render_choose(self, record: Action) -> SafeString | str:
        if not is_allowed(Operation.SKIP, record):
            return ""
        return format_html(
            '<input type="checkbox" class="form-check-input" name="actions" value="{0}" id="choose-{0}"'
            ' aria-label="Select {1} {2}">',
            record.uuid,
            record.action_type,
            resource(record.input_parameters),
        )

    def render_parents(self, record: Any) -> SafeString:
        parents = [link.parent for link in record.first_parents]
        links = format_html_join(
            " ",
            '<a class="uuid" href="{}" title="{} {}">{}</a>',
            (
                (reverse("actions:detail", args=[parent.uuid]), parent.action_type, parent.uuid, short(parent.uuid))
                for parent in parents[:SHOWN_PARENTS]
            ),
        )
        more = record.parent_count - SHOWN_PARENTS
        return format_html("{} and {} more", links, more) if more > 0 else links

    def render_skip(self, record: Action) -> SafeString | str:
        if is_allowed(Operation.RESTORE, record):
            return restore_button(record)
        if not is_allowed(Operation.SKIP, record):
            return ""
        return format_html(
            '<button type="submit" class="btn btn-sm btn-outline-secondary" name="only" value="{0}" id="skip-{0}"'
            ' aria-label="Skip {1} {2}">Skip</button>',
            record.uuid,
            record.action_type,
            resource(record.input_parameters),
        )

    def render_signals(self, record: Action) -> SafeString | str:
        if record.state not in Action.BEGUN:
            return ""
        return format_html_join(" ", "{}", ((signal_button(record, signal),) for signal in allowed_signals(record)))


def signal_button(action: Action, signal: Action.Signal) -> SafeString:
    """Return the button that gives an action a signal: to cancel it asks first."""
    name = signal.lower()
    url = reverse(f"actions:{name}", args=[action.uuid])
    words = (signal.capitalize(), action.action_type, resource(action.input_parameters))
    if signal == Action.Signal.CANCEL:
        return format_html(
            '<a class="btn btn-sm btn-outline-danger" id="{0}-{1}" href="{2}" hx-get="{2}" hx-target="#dialog"'
            ' aria-label="{3} {4} {5}">{3}…</a>',
            *(name, action.uuid, url, *words),
        )
    return format_html(
        '<button type="submit" class="btn btn-sm btn-outline-secondary" id="{0}-{1}" formaction="{2}"'
        ' aria-label="{3} {4} {5}">{3}</button>',
        *(name, action.uuid, url, *words),
    )


def restore_button(action: Action) -> SafeString:
    """Return the button that takes a skip back: it sends the form of the whole table elsewhere."""
    return format_html(
        '<button type="submit" class="btn btn-sm btn-outline-secondary" name="only" value="{0}" id="restore-{0}"'
        ' formaction="{1}" aria-label="Restore {2} {3}">Restore</button>',
        action.uuid,
        reverse("plans:restore", args=[action.action_plan.uuid]),
        action.action_type,
        resource(action.input_parameters),
    )
