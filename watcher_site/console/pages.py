"""The base classes of all pages: permissions, lists, single records, and operations on an object."""

import hashlib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from contextlib import nullcontext
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import PermissionRequiredMixin
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotModified
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_lazy as _
from django.views.generic import DetailView, View
from django.views.generic.detail import SingleObjectMixin
from django_filters.views import FilterView
from django_htmx.http import HttpResponseClientRefresh
from django_tables2 import SingleTableMixin

from watcher_site.authorization.enforcement import target_of
from watcher_site.authorization.permissions import POLICIES, may, policy_of, target_of_page
from watcher_site.console.lists.saved_filters import saved_filters
from watcher_site.console.paging import LimitedRows, drop_unknown_page_size
from watcher_site.database.consistent_reads import consistent_reads
from watcher_site.database.records import Record
from watcher_site.history.recording import PERMISSION_DENIED, describe_refusal, is_recorded, record_refusal
from watcher_site.messages import Text, translate_message
from watcher_site.refusals import Conflict, Invalid, NotFound, Refused, worded
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed
from watcher_site.templatetags.console import ago
from watcher_site.templatetags.names import mark_invisible
from watcher_site.web.reader import language_of, zone_of

# The greatest age in seconds of relative times such as "2 minutes ago" on a page that updates itself.
RELATIVE_TIMES = 30
CANNOT = _("Cannot %(verb)s: %(why)s")
SAFE_METHODS = ("GET", "HEAD")


class Page(PermissionRequiredMixin):
    """A page for users with ``permission_required``. Others are redirected to the login, or get 403.

    A user for whom the page cannot exist, such as that of a password for a user of Keystone, gets 404, which is not
    recorded as a refusal.
    """

    request: HttpRequest

    history_event: ClassVar[str] = ""
    """The event of history entries of this page. By default, it is derived from the name of the class."""
    policy: ClassVar[str] = ""
    """The policy that replaces the first permission. By default, it is derived from the permission."""
    is_within: ClassVar[bool] = False
    """Whether the page changes parts of the record: history entries then have the record as ``within``."""

    def has_permission(self) -> bool:
        if settings.POLICY_FILE and self.request.user.is_authenticated and isinstance(self, SingleObjectMixin):
            self.request.policy_target = target_of(self.get_object())  # type: ignore[attr-defined]
        first, *further = self.get_permission_required()
        return self.may(first, self.policy) and all(map(self.may, further))

    def exists_for(self, user: Any) -> bool:
        """Return whether the page exists for this kind of user, whatever the permissions."""
        return True

    def render_absence(self) -> HttpResponse:
        """Return the response for a user for whom the page does not exist. Raises: `Http404`, the default."""
        raise Http404

    def may(self, permission: str, policy: str = "") -> bool:
        """Return whether this user may perform an operation, by its policy for the object of the page."""
        return may(self.request.user, permission, target_of_page(self.request), policy)

    def handle_no_permission(self) -> Any:
        """Reload a page that updates itself after its session has ended.

        After a POST, the login page states that the request was not executed.
        """
        if self.request.method == "POST" and not self.request.user.is_authenticated:
            messages.warning(
                self.request, _("Your session has ended. The request was not executed: log in and try again.")
            )
        if getattr(self.request, "htmx", False) and not self.request.user.is_authenticated:
            return HttpResponseClientRefresh()
        if self.request.user.is_authenticated:
            if not self.exists_for(self.request.user):
                return self.render_absence()
            uuid = getattr(self, "kwargs", {}).get("uuid")
            self.add_history_entry(PERMISSION_DENIED.text, uuid and str(uuid))
        return super().handle_no_permission()

    def record_problem(self, problem: Exception, record: Any = None) -> None:
        """Record a refusal in history if the state of an object is its reason."""
        if is_recorded(problem):
            self.add_history_entry(describe_refusal(problem), record)

    def add_history_entry(self, why: str, record: Any) -> None:
        target, within = (None, record) if self.is_within else (record, None)
        record_refusal(event_of(self), target, why, within=within)


class ConsistentReadsMixin:
    """A page whose queries all read the same state of the database, so that its parts are consistent.

    Among the bases it follows `Page`, whose permission checks may write sessions and history.
    """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with consistent_reads() if request.method in SAFE_METHODS else nullcontext():
            response = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
            return response.render() if hasattr(response, "render") else response


class ListPage(Page, ConsistentReadsMixin, SingleTableMixin, FilterView):
    """A table of records with filters, sorting and pages. Invalid filters show no rows.

    If ``follows`` is set, htmx polls the table, and receives it when a value of its records has changed.
    """

    table_pagination = {"per_page": 50}
    template_name = "list.html"
    heading: ClassVar[Text]
    guidance: ClassVar[Text] = ""
    help_page: ClassVar[str] = ""
    """The section of the documentation that describes the records, as of the tag ``help_link``."""
    follows: ClassVar[bool] = False
    rows_template: ClassVar[str] = "_rows.html"

    def get(self, request: HttpRequest, *arguments: Any, **path: Any) -> HttpResponse:
        drop_unknown_page_size(request)
        return super().get(request, *arguments, **path)

    def get_table_data(self) -> LimitedRows:
        return LimitedRows(self.object_list)

    def get_template_names(self) -> list[str]:
        return [self.rows_template] if getattr(self.request, "htmx", False) else super().get_template_names()

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        context |= {"heading": self.heading, "guidance": self.guidance, "follows": self.follows}
        filtered = any(self.request.GET.get(name) for name in self.filterset_class.base_filters)
        context |= saved_filters(self.request, self.filterset_class.base_filters)
        return super().get_context_data(is_filtered=filtered, **context)

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        if self.follows:
            context["version"] = compose_version(*self.version_of(context))
            if is_current(self.request, context["version"]):
                return HttpResponseNotModified()
        return super().render_to_response(context, **options)

    def version_of(self, context: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values that the table shows. It is sent again when one of them changes."""
        return ([{**vars(row.record), "_state": None} for row in context["table"].paginated_rows],)


class ByUUID(SingleObjectMixin):
    """A view of one record, which is found by the UUID in the path and not deleted."""

    model: Any
    slug_field = slug_url_kwarg = "uuid"

    def get_queryset(self) -> Any:
        return self.model.objects.present()


class RecordPage(Page, ConsistentReadsMixin, ByUUID, DetailView):
    """The page of one record."""

    def may(self, permission: str, policy: str = "") -> bool:
        """Return whether this user may perform an operation. Reading this record has its own policy."""
        options = self.model._meta
        is_own = permission == f"{options.app_label}.view_{options.model_name}" and permission not in POLICIES
        return super().may(permission, policy or (policy_of(permission).removesuffix("_all") if is_own else ""))


class FollowedPage(RecordPage):
    """The page of one record with a part that updates itself: htmx requests only ``part_template``.

    If the version of the page has not changed, the response is 304, and the part is not rendered.
    """

    part_template: ClassVar[str]

    def get_template_names(self) -> list[str]:
        return [self.part_template] if getattr(self.request, "htmx", False) else super().get_template_names()

    def get_version(self) -> str:
        """Return a text that changes whenever the part changes, or an empty text if no version is known."""
        return ""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.object = self.get_object()
        version = self.get_version()
        if version and is_current(request, version):
            return HttpResponseNotModified()
        return self.render_to_response(self.get_context_data(object=self.object, version=version))


def is_current(request: HttpRequest, version: str) -> bool:
    """Return whether htmx already has this version of the requested part."""
    htmx = getattr(request, "htmx", None)
    return bool(htmx and htmx.ptag == version)


def compose_version(*parts: Any) -> str:
    """Return the version of a page with these parts. It also changes when relative times on the page change."""
    moment = int(time.time() / RELATIVE_TIMES)
    return hashlib.blake2s(repr((moment, *parts)).encode(), digest_size=8).hexdigest()


class OperationView(Page, ByUUID, View, ABC):
    """A button that performs an operation on POST, after a confirmation page if there is a ``question``.

    A refusal becomes a message on the page to which the browser is redirected.
    """

    http_method_names = ["get", "post"]
    verb: ClassVar[Text]
    """The operation with its object, such as "delete the action plan": the button of the confirmation."""
    question: ClassVar[Text] = ""
    consequence: ClassVar[Text] = ""
    look: ClassVar[str] = "danger"
    """The look of the button that confirms the question: ``danger`` for losses, otherwise ``primary``."""
    possible_in: ClassVar[Collection[str] | None] = None
    """The states in which the operation can be offered; None for all states."""

    @abstractmethod
    def perform(self, record: Any) -> str:
        """Perform the operation, and return a sentence about its result.

        Raises:
            Refused, TransitionNotAllowed, ConcurrentTransition: it was not done.
        """

    @abstractmethod
    def redirect_url(self, record: Any, done: bool) -> str:
        """Return the URL or the name of the page to which the browser is redirected."""

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        record = self.get_object()
        if self.possible_in is not None and record.state not in self.possible_in:
            messages.error(request, CANNOT % {"verb": self.verb, "why": describe_state(record)})
        elif self.question:
            return self.render_confirmation(record)
        return redirect(self.redirect_url(record, False))

    def render_confirmation(self, record: Any) -> HttpResponse:
        context = {"name": self.name_of(record), "view": self, "back": self.redirect_url(record, False)}
        return render(self.request, "confirm.html", context)

    def name_of(self, record: Any) -> str:
        """Return the name of the record for users, or its UUID if it has none."""
        return getattr(record, "called", "") or str(record)

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        record = self.get_object()
        return redirect(self.redirect_url(record, perform_with_message(self, record)))


class DeletionView(OperationView):
    """The button that deletes a record, if its state allows it."""

    deleted: ClassVar[Text]
    """The message, with the name of the record."""

    def perform(self, record: Any) -> str:
        try:
            record.remove()
        except Invalid as refusal:
            current = self.get_object()
            why = _("it is %(state)s. Cancel it first.")
            raise Conflict(
                worded(lambda: CANNOT % {"verb": self.verb, "why": why % {"state": current.state}})
            ) from refusal
        return self.deleted % {"name": record}


def event_of(page: Any) -> str:
    """Return the history event of the operation of a page: ``cluster.scale_out`` for ``ScaleOut`` of clusters."""
    if page.history_event:
        return str(page.history_event)
    kind = page.model._meta.verbose_name.replace(" ", "_")
    if isinstance(page, ListPage | RecordPage):
        return f"{kind}.view"
    words = re.findall("[A-Z][a-z]*", type(page).__name__)
    return f"{kind}.{'_'.join(words).lower().removesuffix(f'_{kind}')}"


def perform_with_message(view: OperationView, record: Model | None) -> bool:
    """Perform the operation, add a message with its outcome, and return whether it succeeded."""
    try:
        messages.success(view.request, view.perform(record))
    except (Refused, ConcurrentTransition, TransitionNotAllowed) as problem:
        messages.error(view.request, describe_problem(view, problem, record))
        view.record_problem(problem, record)
        return False
    return True


def describe_problem(view: OperationView, problem: Exception, record: Model | None) -> str:
    if isinstance(problem, NotFound | ConcurrentTransition) and record and is_gone(record):
        return CANNOT % {"verb": view.verb, "why": _("it was deleted.")}
    if isinstance(problem, Refused):
        return translate_message(str(problem))
    if isinstance(problem, ConcurrentTransition):
        why = _("the state changed at the same time. Reload the page and try again.")
        return CANNOT % {"verb": view.verb, "why": why}
    return CANNOT % {"verb": view.verb, "why": describe_state(record)}


def is_gone(record: Model) -> bool:
    """Return whether a record was deleted since it was read."""
    rows: Any = type(record)._default_manager.filter(pk=record.pk)
    return not (rows.filter(deleted_at=None) if isinstance(record, Record) else rows).exists()


def describe_state(record: Any) -> str:
    """Return a sentence with the state of a record and the time of its last change."""
    if record.updated_at is None:
        return _("it is already %(state)s.") % {"state": record.state}
    return _("it is already %(state)s (updated %(ago)s).") % {"state": record.state, "ago": ago(record.updated_at)}


class PagesForReaders:
    """Middleware that activates the reader's language and time zone for pages, and marks control characters.

    The characters are marked in the HTML of all pages of the console, because any name or message may contain them.
    """

    # All other responses, for programs, are in English and UTC.
    PATHS = ("/console", "/docs", "/v1/docs")

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(self.PATHS):
            return self.get_response(request)
        language = language_of(request)
        with translation.override(language), timezone.override(zone_of(request)):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ["Accept-Language"])
        is_html = response.headers.get("Content-Type", "").startswith("text/html") and not response.streaming
        if is_html and request.path_info.startswith("/console"):
            html = response.content.decode()
            if (marked := mark_invisible(html)) is not html:
                response.content = marked.encode()
        return response
