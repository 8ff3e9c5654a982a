"""The edges, boxes and layers of the graph of a plan, rendered in Python because templates would be too slow."""

from collections.abc import Iterable
from html import escape

from django import template
from django.utils.formats import number_format
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from actions.event_details import generic_message
from plans.console.graph.layers import Layer
from plans.console.graph.picture import Box, Stroke, shorten_label
from watcher_site.messages import translate_message
from watcher_site.templatetags.console import state_bar
from watcher_site.templatetags.names import svg_label, visible
from watcher_site.web.addresses import page_address

TYPE_LENGTH = 26

register = template.Library()


@register.simple_tag
def graph_strokes(strokes: Iterable[Stroke], are_arrows: bool) -> SafeString:
    """Draw edges, with the numbers by which a script finds the edges of a box."""
    marker = ' marker-end="url(#arrow)"' if are_arrows else ""
    return mark_safe(  # noqa: S308 (numbers only)
        "".join(
            f'<path class="edge" d="{one.path}" data-group="{one.group}" data-start="{number(one.start)}"'
            f' data-end="{number(one.end)}"{marker} />'
            for one in strokes
        )
    )


def number(key: int | None) -> str:
    return "" if key is None else str(key)


@register.simple_tag
def graph_boxes(boxes: Iterable[Box], details: bool) -> SafeString:
    """Draw the boxes of actions.

    Args:
        details: whether messages may contain the errors of actions.
    """
    return mark_safe("".join(draw_box(box, details) for box in boxes))  # noqa: S308 (each text was escaped)


def draw_box(box: Box, details: bool) -> str:
    action, place = box.action, box.place
    resource, label = escape(visible(box.resource)), escape(box.resource_label)
    marked_label = svg_label(box.resource, shorten_label)
    kind, state = escape(action.action_type), escape(action.state)
    short_kind, kind_label = escape(shorten_label(action.action_type, TYPE_LENGTH)), escape(box.type_label)
    message = action.status_message if details else generic_message(action.state, action.status_message)
    message = f": {escape(visible(translate_message(message)))}" if message else ""
    name, first_line, second_line = (
        (f"{label} {short_kind}", marked_label, short_kind) if label else (kind_label, kind_label, "")
    )
    # The blanks separate the texts in the accessible name of the link.
    return (
        f'<a class="box box-{state.lower()}" href="{escape(page_address("actions:detail", action.uuid))}"'
        f' aria-label="{name} {state}" data-key="{place.key}" data-in="{number(box.incoming)}"'
        f' data-out="{" ".join(map(str, box.outgoing))}">'
        f"<title>{kind} {resource}, {state}{message}</title>"
        f'<g transform="translate({place.x} {place.y})">'
        f'<rect class="outline" width="{place.width}" height="{place.height}" rx="6" />'
        f'<rect class="stripe" width="5" height="{place.height}" rx="2.5" />'
        f'<text class="box-name" x="14" y="17" clip-path="url(#inside-of-box)">{first_line}</text> '
        f'<text class="box-type" x="14" y="33">{second_line}</text> '
        f'<text class="box-state" x="14" y="49">{state}</text></g></a>'
    )


@register.simple_tag
def layer_rows(layers: Iterable[Layer], largest: int) -> SafeString:
    """Draw the layers of a plan, with links to their actions, and bars in proportion to the largest layer."""
    words, label = escape(gettext("Actions of layer")), gettext("Layer by state")
    return mark_safe("".join(draw_layer(layer, largest, words, label) for layer in layers))  # noqa: S308 (as above)


def draw_layer(layer: Layer, largest: int, words: str, label: str) -> str:
    address = f"?layer={layer.number}"
    counts = " ".join(
        f'<a href="{address}&amp;state={state}#actions-heading">'
        f'<span class="dot fill-{state.lower()}"></span>{number_format(count)} {state}</a>'
        for state, count in layer.counts.items()
    )
    return (
        f'<li><a href="{address}#actions-heading"><span class="visually-hidden">{words}</span>'
        f' <span class="layer-number">{layer.number}</span></a>'
        f' <span class="layer-counts">{counts}</span>{state_bar(layer.counts, label, largest)}</li>'
    )
