"""The tables of actions: the console's list, and the table of a plan's page."""

from typing import Any

import django_tables2 as tables
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.functional import cached_property, keep_lazy
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from actions.console.descriptions import describe_parameters, shorten
from actions.event_details import generic_message, sees_details
from actions.models import Action
from actions.models.naming import resource
from actions.models.refusals import Operation, allowed_signals, is_allowed
from watcher_site.console.columns import TABLE_ATTRIBUTES, PlanColumn, StateColumn, TimeColumn, UUIDColumn
from watcher_site.console.naming import Names, find_names, name_objects
from watcher_site.messages import translate_message
from watcher_site.templatetags.console import clock, elapsed
from watcher_site.templatetags.names import name, short, uuid_link
from watcher_site.web.addresses import page_address

format_html_lazy = keep_lazy(str)(format_html)
SIGNALS = {
    Action.Signal.CANCEL: (_("Cancel…"), _("Cancel %(action)s")),
    Action.Signal.SUSPEND: (_("Suspend"), _("Suspend %(action)s")),
    Action.Signal.RESUME: (_("Resume"), _("Resume %(action)s")),
}
SHOWN_PARENTS = 2
BOXES = {Operation.SKIP: "actions", Operation.RESTORE: "skipped"}
"""The names of the check boxes of actions, by the operation that is offered for them."""
DERIVED = format_html_lazy(
    ' <span class="secondary" title="{}">{}</span>',
    _("created by another action, which waits for it while it runs"),
    _("derived"),
)


def cell_attributes(name: str) -> dict[str, dict[str, str]]:
    """Return a CSS class for a column's cells, which the style sheet positions on narrow screens."""
    return {"td": {"class": name}}


class ResourceColumn(tables.Column):
    """The object and the parameters of an action, with its message below."""

    def __init__(self, **options: Any) -> None:
        options = {"accessor": "input_parameters", "verbose_name": _("resource"), "orderable": False, **options}
        super().__init__(**options)

    def render(self, value: dict[str, Any], record: Action, table: Any) -> SafeString:
        return format_html(
            "{}{}", render_resource(record), render_message(record, sees_details(table.request.user), table.names)
        )


def render_resource(action: Action) -> SafeString:
    """Return the object of an action and its other parameters."""
    shown, details = shorten(resource(action.input_parameters)), describe_parameters(action)
    return format_html('{} <span class="manner">{}</span>', name(shown) if shown else "" if details else "—", details)


def render_linked_type(action: Action) -> SafeString:
    """Return the type of an action, the beginning of its UUID with a link, and a mark if it is a derived action."""
    return format_html(
        "{} {}{}",
        action.action_type,
        uuid_link(action.uuid, "actions:detail"),
        DERIVED if action.derived_from_id else "",
    )


def render_message(action: Action, details: bool, names: Names) -> SafeString | str:
    """Return the message of an action and the user who skipped it, or its signal that is not yet processed.

    Args:
        details: whether the message may contain the reason of a failure.
        names: the names of the objects in the message, by UUID.
    """
    if action.control:
        text = _("%(signal)s takes effect at the next checkpoint.") % {"signal": action.control}
        return format_html('<div class="message said">{}</div>', text)
    if not action.status_message:
        return ""
    by = format_html(' <span class="secondary">({})</span>', name(action.skipped_by)) if action.skipped_by else ""
    message = action.status_message if details else generic_message(action.state, action.status_message)
    linked_text = name_objects(translate_message(message or ""), {**names, **action.known_names})
    return format_html('<div class="message said"><bdi>{}</bdi>{}</div>', linked_text, by)


def describe_times(action: Action) -> SafeString:
    """Return the duration of an action's last attempt, with its start on hovering, and the number of its retries."""
    parts = []
    if action.start_time:
        started = gettext("started %(time)s") % {"time": clock(action.start_time)}
        parts.append(format_html('<span title="{}">{}</span>', started, elapsed(action)))
    if action.retries:
        text = ngettext("%(number)d retry", "%(number)d retries", action.retries) % {"number": action.retries}
        parts.append(format_html('<span class="secondary">{}</span>', text))
    return format_html_join(" · ", "{}", ((part,) for part in parts))


class ObjectNamesTable(tables.Table):
    """A table of actions whose messages show names instead of UUIDs of objects."""

    @cached_property
    def names(self) -> Names:
        """The names of the objects in the messages of this page, by UUID."""
        actions = [row.record for row in self.paginated_rows]
        known_names = {uuid: name for action in actions for uuid, name in action.known_names.items()}
        return find_names([action.status_message or "" for action in actions], known_names)


class SelectableActions(ObjectNamesTable):
    """A table of actions with a check box for each action that can be skipped or restored, for users who may skip."""

    choose = tables.Column(
        empty_values=(),
        orderable=False,
        attrs=cell_attributes("choose"),
        verbose_name=format_html_lazy(
            '<input type="checkbox" class="form-check-input" id="choose-all" data-choose-all aria-label="{}">'
            ' <label for="choose-all">{}</label>',
            _("Select all actions on this page"),
            _("this page"),
        ),
    )

    class Meta:
        row_attrs = {"id": lambda record: f"action-{short(record.uuid)}"}

    def render_choose(self, record: Action) -> SafeString | str:
        if not (name := next((BOXES[operation] for operation in BOXES if is_allowed(operation, record)), None)):
            return ""
        return format_html(
            '<input type="checkbox" class="form-check-input" name="{0}" value="{1}" id="choose-{1}" aria-label="{2}">',
            name,
            record.uuid,
            gettext("Select %(action)s") % {"action": record.called},
        )


class ActionTable(SelectableActions):
    state = StateColumn()
    uuid = UUIDColumn("actions:detail", verbose_name=_("action"), orderable=False)
    action_type = tables.Column(verbose_name=_("type"), attrs=cell_attributes("action-type"))
    resource = ResourceColumn(attrs=cell_attributes("resource"))
    action_plan = PlanColumn(verbose_name=_("plan"), order_by="action_plan")
    updated_at = TimeColumn(accessor="updated_at", verbose_name=_("updated"))

    class Meta:
        model = Action
        fields = ("choose", "state", "uuid", "action_type", "resource", "action_plan", "updated_at")
        attrs = TABLE_ATTRIBUTES
        row_attrs = SelectableActions.Meta.row_attrs

    def __init__(self, *arguments: Any, may_skip: bool = False, exclude: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(*arguments, exclude=exclude if may_skip else (*exclude, "choose"), **options)


class PlanActionTable(SelectableActions):
    """The actions of one plan, with a button for each pending or skipped action, for users who may skip."""

    # The key makes the sort order unique, so that no row is on two pages.
    state = StateColumn(attrs=cell_attributes("state-cell"), order_by=("state", "pk"))
    action_type = tables.Column(verbose_name=_("type"), attrs=cell_attributes("type"), order_by=("action_type", "pk"))
    resource = ResourceColumn(
        attrs=cell_attributes("resource"), orderable=True, order_by=("input_parameters__resource_name", "pk")
    )
    parents = tables.Column(
        accessor="first_parents",
        verbose_name=_("waits for"),
        orderable=False,
        empty_values=(),
        attrs=cell_attributes("parents"),
    )
    duration = tables.Column(
        empty_values=(),
        orderable=False,
        verbose_name=_("duration"),
        attrs=cell_attributes("duration number text-nowrap"),
    )
    skip = tables.Column(
        empty_values=(),
        orderable=False,
        verbose_name=format_html_lazy('<span class="visually-hidden">{}</span>', _("Skip")),
        attrs=cell_attributes("skip"),
    )

    class Meta:
        model = Action
        fields = ("choose", "state", "action_type", "resource", "parents", "duration", "skip", "signals")
        attrs = {"class": f"{TABLE_ATTRIBUTES['class']} actions"}
        row_attrs = SelectableActions.Meta.row_attrs

    signals = tables.Column(
        empty_values=(),
        orderable=False,
        verbose_name=format_html_lazy('<span class="visually-hidden">{}</span>', _("Suspend, resume or cancel")),
        attrs=cell_attributes("skip"),
    )

    def __init__(self, *arguments: Any, may_skip: bool, may_signal: bool = False, **options: Any) -> None:
        excluded = [*(() if may_skip else ("choose", "skip")), *(() if may_signal else ("signals",))]
        super().__init__(*arguments, exclude=excluded, **options)

    def render_action_type(self, value: str, record: Action) -> SafeString:
        return render_linked_type(record)

    def render_parents(self, record: Any) -> SafeString:
        own = resource(record.input_parameters)
        parents = [link.parent for link in record.first_parents[:SHOWN_PARENTS]]
        # The types distinguish actions on the same object.
        names = [resource(parent.input_parameters) for parent in parents]
        links = format_html_join(
            ", ",
            '<a href="{}" title="{} {}">{}</a>',
            (
                (
                    page_address("actions:detail", parent.uuid),
                    parent.action_type,
                    parent.uuid,
                    parent.action_type if called in ("", own) else name(shorten(called)),
                )
                for parent, called in zip(parents, names, strict=True)
            ),
        )
        more = record.parent_count - SHOWN_PARENTS
        if more <= 0:
            return links
        return format_html("{} {}", links, gettext("and %(number)s more") % {"number": number_format(more)})

    def render_duration(self, record: Action) -> SafeString:
        return describe_times(record)

    def render_skip(self, record: Action) -> SafeString | str:
        if is_allowed(Operation.RESTORE, record):
            return restore_button(record)
        if not is_allowed(Operation.SKIP, record):
            return ""
        return format_html(
            '<button type="submit" class="btn btn-sm btn-outline-secondary" name="only" value="{0}" id="skip-{0}"'
            ' aria-label="{1}">{2}</button>',
            record.uuid,
            gettext("Skip %(action)s") % {"action": record.called},
            gettext("Skip"),
        )

    def render_signals(self, record: Action) -> SafeString | str:
        if record.state not in Action.BEGUN:
            return ""
        return format_html_join(" ", "{}", ((signal_button(record, signal),) for signal in allowed_signals(record)))


def signal_button(action: Action, signal: Action.Signal) -> SafeString:
    """Return the button that sends a signal to an action. CANCEL requires a confirmation."""
    name = signal.lower()
    url = reverse(f"actions:{name}", args=[action.uuid])
    label, described = SIGNALS[signal]
    texts = (described % {"action": action.called}, label)
    if signal == Action.Signal.CANCEL:
        return format_html(
            '<a class="btn btn-sm btn-outline-danger" id="{0}-{1}" href="{2}" hx-get="{2}" hx-target="#dialog"'
            ' aria-label="{3}">{4}</a>',
            *(name, action.uuid, url, *texts),
        )
    return format_html(
        '<button type="submit" class="btn btn-sm btn-outline-secondary" id="{0}-{1}" formaction="{2}"'
        ' aria-label="{3}">{4}</button>',
        *(name, action.uuid, url, *texts),
    )


def restore_button(action: Action) -> SafeString:
    """Return the button that restores an action. It submits the form of the table to another URL."""
    return format_html(
        '<button type="submit" class="btn btn-sm btn-outline-secondary" name="only" value="{0}" id="restore-{0}"'
        ' formaction="{1}" aria-label="{2}">{3}</button>',
        action.uuid,
        page_address("plans:restore", action.action_plan.uuid),
        gettext("Restore %(action)s") % {"action": action.called},
        gettext("Restore"),
    )
