"""The boxes of a plan's graph, written in Python: a template for each takes most of the time of the page."""

from collections.abc import Iterable

from django import template
from django.template.defaultfilters import truncatechars
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from actions.templatetags.actions import message_for
from plans.console.graph.picture import Box, Stroke
from watcher_site.templatetags.names import visible
from watcher_site.web.addresses import page_address

TYPE_LENGTH = 26

register = template.Library()


@register.simple_tag
def graph_strokes(strokes: Iterable[Stroke], are_arrows: bool) -> SafeString:
    """Draw edges, with the numbers by which a script finds those of a box."""
    marker = mark_safe(' marker-end="url(#arrow)"') if are_arrows else ""
    return format_html_join(
        "",
        '<path class="edge" d="{}" data-group="{}" data-start="{}" data-end="{}"{} />',
        (
            (one.path, one.group, "" if one.start is None else one.start, "" if one.end is None else one.end, marker)
            for one in strokes
        ),
    )


@register.simple_tag
def graph_box(box: Box, details: bool) -> SafeString:
    """Draw the box of an action.

    Args:
        details: whether the message may say why the action failed.
    """
    # The blanks between the texts tell their words apart, as the name of the link has them.
    action, place, resource, label = box.action, box.place, box.resource, box.resource_label
    resource, label = visible(resource), visible(label)
    action_type = truncatechars(action.action_type, TYPE_LENGTH)
    return format_html(
        '<a class="box box-{state_class}" href="{address}" aria-label="{name} {state}"'
        ' data-key="{key}" data-in="{incoming}" data-out="{outgoing}">'
        "<title>{type} {resource}, {state}{message}</title>"
        '<g transform="translate({x} {y})">'
        '<rect class="outline" width="{width}" height="{height}" rx="6" />'
        '<rect class="stripe" width="5" height="{height}" rx="2.5" />'
        '<text class="box-name" x="14" y="17">{first_line}</text> '
        '<text class="box-type" x="14" y="33">{second_line}</text> '
        '<text class="box-state" x="14" y="49">{state}</text></g></a>',
        key=place.key,
        incoming="" if box.incoming is None else box.incoming,
        outgoing=" ".join(map(str, box.outgoing)),
        state_class=action.state.lower(),
        address=page_address("actions:detail", action.uuid),
        name=f"{label} {action_type}" if label else box.type_label,
        state=action.state,
        type=action.action_type,
        resource=resource,
        message=f": {visible(message_for(action, details))}" if action.status_message else "",
        x=place.x,
        y=place.y,
        width=place.width,
        height=place.height,
        first_line=label or box.type_label,
        second_line=action_type if label else "",
    )
