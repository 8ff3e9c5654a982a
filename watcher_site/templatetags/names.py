"""Template tags for names and identifiers of objects: harmless, with links, and with buttons that copy them."""

import re
from typing import Any

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from watcher_site.web.addresses import page_address

# What `audits.operations.creation.default_name` puts behind the name of a strategy, a template or a goal.
MADE_UP = re.compile(r"-(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?$")
SHOWN_SO = re.compile(r" (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)$")
# Control characters, and invisible ones that change the direction or the look of the text around them. Joiners are not
# among them: some scripts need these.
BEYOND_ASCII = "\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
INVISIBLE = re.compile(f"[\x00-\x1f{BEYOND_ASCII}]")
PICTURES_OF_CONTROLS = 0x2400
# The same in HTML, without the white space between its elements; the elements; and the attributes that people read.
INVISIBLE_IN_HTML = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f{BEYOND_ASCII}]")
ELEMENT = re.compile("(<[^>]*>)")
# Elements that contain only text, and elements whose text is sent back or executed, and is not changed.
ONLY_TEXT = re.compile(r"<(?:title|option|text|tspan)\b")
AS_IT_IS = re.compile(r"<(?:textarea|script|style)\b")
READ_ATTRIBUTE = re.compile('(?<= )(?:title|aria-label)="[^"]*"')

register = template.Library()


@register.filter
def short(identifier: Any) -> str:
    """Return the beginning of a UUID, enough for a person to tell it from its neighbours."""
    return str(identifier)[:8]


@register.filter
def brief(name: str) -> str:
    """Return a name that was made of another and the time without the parts of a second: for lists."""
    return MADE_UP.sub(r" \1 \2", str(name))


def stored_beginning(shown: str) -> str:
    """Return the beginning of the name that `brief` shows as this text; of other texts, the text itself."""
    return SHOWN_SO.sub(r"-\1T\2", shown)


@register.filter
def visible(name: Any) -> str:
    """Return a name with a visible mark for each control character: for attributes, titles and messages."""
    return INVISIBLE.sub(lambda match: mark_of(match[0]), str(name))


def mark_of(character: str) -> str:
    """Return the mark of an invisible character: ``␛`` for ASCII's, and else its number, such as ``U+202E``."""
    code = ord(character)
    return chr(PICTURES_OF_CONTROLS + code) if code < 0x20 else f"U+{code:04X}"


@register.filter
def name(text: Any) -> SafeString:
    """Show a name that a person or the cloud gave to an object, whatever characters are in it.

    Control characters are marked, and the direction of the name does not change that of the text around it.
    """
    parts, end, text = [], 0, str(text)
    for match in INVISIBLE.finditer(text):
        mark = format_html('<span class="control">{}</span>', mark_of(match[0]))
        parts += [conditional_escape(text[end : match.start()]), mark]
        end = match.end()
    parts.append(conditional_escape(text[end:]))
    return mark_safe(f"<bdi>{''.join(parts)}</bdi>")  # noqa: S308 (each part was escaped)


def mark_invisible(html: str) -> str:
    """Return HTML with a visible mark for each control character in its texts and in the attributes that people read.

    Its texts and attributes are escaped, so that each ``<`` begins an element and each ``>`` ends one. The values of
    fields stay as they are, because they are sent back.
    """
    if not INVISIBLE_IN_HTML.search(html):
        return html
    parts = ELEMENT.split(html)
    texts, elements = parts[::2], parts[1::2]
    parts[::2] = [mark_text(text, element) for text, element in zip(texts, ["", *elements], strict=True)]
    parts[1::2] = [READ_ATTRIBUTE.sub(lambda match: mark_plainly(match[0]), element) for element in elements]
    return "".join(parts)


def mark_text(text: str, element: str) -> str:
    """Return the text behind an element with marks, which are elements themselves where that is possible."""
    if AS_IT_IS.match(element):
        return text
    if ONLY_TEXT.match(element):
        return mark_plainly(text)
    return INVISIBLE_IN_HTML.sub(lambda match: f'<span class="control">{mark_of(match[0])}</span>', text)


def mark_plainly(text: str) -> str:
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
    """Show the beginning of a UUID, with a button that copies the whole."""
    shown = format_html('<span class="uuid" title="{}">{}</span>', uuid, short(uuid))
    return format_html('<span class="identifier">{}{}</span>', shown, copy_button(uuid))


def named_link(text: str, uuid: Any, page: str) -> SafeString:
    """Return a link to the page of an object by its name, with the beginning of its UUID beside it."""
    link = format_html('<a href="{}" title="{}">{}</a>', page_address(page, uuid), visible(text), name(brief(text)))
    return format_html("{} {}", link, short_uuid(uuid))


@register.filter
def plan_name(plan: Any) -> str:
    """Return the name of an action plan: of its audit, or the operation that a person requested."""
    return brief(plan.called) or _("Action plan")


@register.simple_tag
def plan_link(plan: Any) -> SafeString:
    """Show the name of an action plan with a link to its page, and the beginning of its UUID."""
    return named_link(plan.called or _("Action plan"), plan.uuid, "plans:detail")
