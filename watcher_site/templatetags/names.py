"""Template tags for names and identifiers of objects: escaped, with links, and with copy buttons."""

import re
from collections.abc import Callable
from typing import Any

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from watcher_site.web.addresses import page_address

# The ending that `audits.operations.creation.default_name` appends to the name of a strategy, template or goal.
GENERATED_ENDING = re.compile(r"-(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?$")
SHOWN_ENDING = re.compile(r" (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)$")
# Control characters, and invisible ones that change the direction or rendering of surrounding text. Joiners are not
# included, because some scripts require them.
BEYOND_ASCII = "\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
INVISIBLE = re.compile(f"[\x00-\x1f{BEYOND_ASCII}]")
PICTURES_OF_CONTROLS = 0x2400
# The same in HTML, without white space between elements; elements; and attributes with text.
INVISIBLE_IN_HTML = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f{BEYOND_ASCII}]")
ELEMENT = re.compile("(<[^>]*>)")
# Elements that contain only text, and elements whose text is submitted or executed, which must not be changed.
ONLY_TEXT = re.compile(r"<(?:title|option|text|tspan)\b")
VERBATIM = re.compile(r"<(?:textarea|script|style)\b")
TEXT_ATTRIBUTE = re.compile('(?<= )(?:title|aria-label)="[^"]*"')

register = template.Library()


@register.filter
def short(identifier: Any) -> str:
    """Return the beginning of a UUID, which is enough to distinguish objects in a list."""
    return str(identifier)[:8]


@register.filter
def brief(name: str) -> str:
    """Return a generated name without the fraction of seconds, for lists."""
    return GENERATED_ENDING.sub(r" \1 \2", str(name))


def stored_beginning(shown: str) -> str:
    """Return the beginning of the stored name for a text that `brief` returns; other texts are not changed."""
    return SHOWN_ENDING.sub(r"-\1T\2", shown)


@register.filter
def visible(name: Any) -> str:
    """Return a name with visible marks for control characters, for attributes, titles and messages."""
    return INVISIBLE.sub(lambda match: mark_of(match[0]), str(name))


def mark_of(character: str) -> str:
    """Return the mark of an invisible character: ``␛`` for ASCII characters, and ``U+202E`` for others."""
    code = ord(character)
    return chr(PICTURES_OF_CONTROLS + code) if code < 0x20 else f"U+{code:04X}"


@register.filter
def name(text: Any) -> SafeString:
    """Show a name that a user or the cloud gave to an object, with any characters.

    Control characters are marked, and the direction of the name does not affect surrounding text.
    """
    parts, end, text = [], 0, str(text)
    for match in INVISIBLE.finditer(text):
        mark = format_html('<span class="control">{}</span>', mark_of(match[0]))
        parts += [conditional_escape(text[end : match.start()]), mark]
        end = match.end()
    parts.append(conditional_escape(text[end:]))
    return mark_safe(f"<bdi>{''.join(parts)}</bdi>")  # noqa: S308 (each part was escaped)


def svg_label(text: str, shorten: Callable[[str], str]) -> SafeString:
    """Return a shortened name for a text of SVG, in which control characters are marked by elements.

    Args:
        shorten: cuts the text with plain marks at its end. If it also changes the text before, marks are plain.
    """
    label, parts, end, growth = shorten(visible(text)), [], 0, 0
    for match in INVISIBLE.finditer(text):
        mark, begin = mark_of(match[0]), match.start() + growth
        if not label.startswith(mark, begin):
            break
        parts += [conditional_escape(label[end:begin]), format_html('<tspan class="control">{}</tspan>', mark)]
        end, growth = begin + len(mark), growth + len(mark) - 1
    parts.append(conditional_escape(label[end:]))
    return mark_safe("".join(parts))  # noqa: S308 (each part was escaped)


def mark_invisible(html: str) -> str:
    """Return HTML with visible marks for control characters in its texts and text attributes.

    Its texts and attributes are escaped, so that each ``<`` begins an element and each ``>`` ends one. The values of
    fields are not changed, because they are submitted.
    """
    if not INVISIBLE_IN_HTML.search(html):
        return html
    parts = ELEMENT.split(html)
    texts, elements = parts[::2], parts[1::2]
    parts[::2] = [mark_text(text, element) for text, element in zip(texts, ["", *elements], strict=True)]
    parts[1::2] = [TEXT_ATTRIBUTE.sub(lambda match: mark_plainly(match[0]), element) for element in elements]
    return "".join(parts)


def mark_text(text: str, element: str) -> str:
    """Return the text after an element with marks, which are HTML elements if the element permits this."""
    if VERBATIM.match(element):
        return text
    if ONLY_TEXT.match(element):
        return mark_plainly(text)
    return INVISIBLE_IN_HTML.sub(lambda match: f'<span class="control">{mark_of(match[0])}</span>', text)


def mark_plainly(text: str) -> str:
    """Return a text with marks for control characters, except for tabs and line ends."""
    return INVISIBLE_IN_HTML.sub(lambda match: mark_of(match[0]), text)


@register.simple_tag
def copy_button(identifier: Any) -> SafeString:
    """Show a button that copies a UUID; pages without JavaScript do not show it."""
    label = _("Copy UUID %(beginning)s") % {"beginning": short(identifier)}
    return format_html(
        '<button type="button" class="copy" data-copy="{}" aria-label="{}" title="{}"></button>',
        *(identifier, label, label),
    )


@register.simple_tag
def short_uuid(uuid: Any) -> SafeString:
    """Show the beginning of a UUID, with a button that copies all of it."""
    shown = format_html('<span class="uuid" title="{}">{}</span>', uuid, short(uuid))
    return format_html('<span class="identifier">{}{}</span>', shown, copy_button(uuid))


def uuid_link(uuid: Any, page: str) -> SafeString:
    """Return the beginning of a UUID, with a link to the page of its object and a button that copies all of it."""
    return format_html(
        '<span class="identifier"><a class="uuid" href="{}" title="{}">{}</a>{}</span>',
        *(page_address(page, uuid), uuid, short(uuid), copy_button(uuid)),
    )


def named_link(text: str, uuid: Any, page: str) -> SafeString:
    """Return a link to the page of an object by its name, with the beginning of its UUID."""
    link = format_html('<a href="{}" title="{}">{}</a>', page_address(page, uuid), visible(text), name(brief(text)))
    return format_html("{} {}", link, short_uuid(uuid))


@register.filter
def plan_name(plan: Any) -> str:
    """Return the name of an action plan: of its audit, or of the requested operation."""
    return brief(plan.called) or _("Action plan")


@register.simple_tag
def plan_link(plan: Any, after_kind: bool = False) -> SafeString:
    """Show the name of an action plan with a link to its page, and the beginning of its UUID.

    Args:
        after_kind: whether the words "Action plan" precede. A plan without a name then has only the UUID.
    """
    text = plan.called
    if after_kind and not text:
        return uuid_link(plan.uuid, "plans:detail")
    return named_link(text or _("Action plan"), plan.uuid, "plans:detail")
