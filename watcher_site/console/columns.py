"""Table columns and filter choices that all apps share."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import django_tables2 as tables
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _

from watcher_site.messages import Text, translate_message
from watcher_site.templatetags.console import shortened, state_badge, until, when
from watcher_site.templatetags.names import brief, name, plan_link, short, uuid_link, visible

TABLE_ATTRIBUTES = {"class": "table table-hover align-middle mb-0"}


class StateColumn(tables.Column):
    """A state with its colour."""

    def render(self, record: Any, bound_column: Any) -> SafeString:
        # The stored value, as in the API, not the title that Django generates from it.
        return state_badge(bound_column.accessor.resolve(record))


class TimeColumn(tables.Column):
    """The time since a moment, with the moment itself on hovering.

    ``accessor`` is required. Rows without a moment sort as the oldest, as in the API and its indexes.
    """

    attrs = {"th": {"class": "text-nowrap"}, "td": {"class": "text-nowrap"}}

    def render(self, value: datetime) -> SafeString | str:
        return when(value)

    def order(self, queryset: QuerySet[Any], is_descending: bool) -> tuple[QuerySet[Any], bool]:
        name = str((self.order_by or (self.accessor,))[0])
        if not queryset.model._meta.get_field(name).null:
            return queryset, False
        moment = F(name)
        first = moment.desc(nulls_last=True) if is_descending else moment.asc(nulls_first=True)
        return queryset.order_by(first), True


class DueColumn(TimeColumn):
    """The time until a moment, with the moment itself on hovering."""

    def render(self, value: datetime) -> SafeString | str:
        return until(value)


def with_zone(label: Text) -> Text:
    """Return the label of a field of times with the reader's time zone."""
    return format_lazy("{} ({})", label, lazy(timezone.get_current_timezone_name, str)())


def fill_placeholders(text: Text, **values: Any) -> SafeString:
    """Return a text with its placeholders replaced by values, which may be HTML."""
    escaped = {name: conditional_escape(value) for name, value in values.items()}
    return mark_safe(conditional_escape(text) % escaped)  # noqa: S308 (each part was escaped)


def render_in_one_line(text: str) -> SafeString:
    return format_html('<span class="one-line" title="{}"><bdi>{}</bdi></span>', text, text)


class UUIDColumn(tables.Column):
    """The beginning of a record's UUID, with a link to its page and a button that copies it."""

    def __init__(self, page: str, **options: Any) -> None:
        super().__init__(**options)
        self.page = page

    def render(self, value: Any) -> SafeString:
        return uuid_link(value, self.page)


class PlanColumn(tables.Column):
    """The name of an action plan with a link to its page, and the beginning of its UUID."""

    attrs = {"td": {"class": "name"}}

    def render(self, value: Any) -> SafeString:
        return plan_link(value)


class CompareColumn(tables.Column):
    """Boxes that select the records to compare: they belong to the form ``compare`` of the list."""

    def __init__(self, **options: Any) -> None:
        super().__init__(accessor="uuid", verbose_name=gettext_lazy("compare"), orderable=False, **options)

    def render(self, value: Any, record: Any) -> SafeString:
        return format_html(
            '<input type="checkbox" class="form-check-input" form="compare" name="compare" value="{0}"'
            ' id="compare-{0}" aria-label="{1}">',
            value,
            _("Select %(name)s for the comparison") % {"name": visible(getattr(record, "name", None) or short(value))},
        )


class NameColumn(tables.Column):
    """A column of names: one that ends with a generated time is shortened, and shown in full on hovering."""

    attrs = {"td": {"class": "name"}}

    def render(self, value: str) -> SafeString:
        return format_html('<span title="{}">{}</span>', visible(value), name(brief(value)))


class PhraseColumn(tables.Column):
    """A column of labels of several words, which is wide enough for two or three of them."""

    attrs = {"td": {"class": "phrase"}}


class LineColumn(tables.Column):
    """A column of texts of any length, cut to one line and shown in full on hovering."""

    def render(self, value: Any) -> SafeString:
        return render_in_one_line(str(value))


class MessageColumn(tables.Column):
    """A column of a record's messages: the first lines, and the whole text on hovering."""

    def __init__(self, **options: Any) -> None:
        super().__init__(orderable=False, default="", attrs={"td": {"class": "message"}}, **options)

    def render(self, value: str) -> SafeString:
        return format_html('<span class="first-lines" title="{}">{}</span>', value, shortened(value))


class StoredMessageColumn(MessageColumn):
    """A column of messages in the language of the reader, with the stored text on hovering."""

    def render(self, value: str) -> SafeString:
        shown = shortened(translate_message(value))
        return format_html('<span class="first-lines" title="{}">{}</span>', value, shown)


class NumberColumn(tables.Column):
    """A number, aligned to the right."""

    attrs = {"th": {"class": "text-end"}, "td": {"class": "text-end text-nowrap number"}}


def make_choices(values: Iterable[str]) -> list[tuple[str, str]]:
    """Return choices whose labels are the stored values, as in the API: ``SUCCEEDED``, not "Succeeded"."""
    return [(value, value) for value in values]
