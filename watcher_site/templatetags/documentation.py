"""The links from pages to the documentation of concepts."""

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

register = template.Library()


@register.simple_tag
def help_link(target: str, concept: str) -> SafeString:
    """Return a link to a page or a section of the documentation: ``operating`` or ``operating#quotas``."""
    page, _hash, anchor = target.partition("#")
    address = reverse("docs:page", args=[page]) + (f"#{anchor}" if anchor else "")
    label = _("Help: %(concept)s") % {"concept": concept}
    return format_html('<a class="help" href="{}" aria-label="{}" title="{}">?</a>', address, label, label)
