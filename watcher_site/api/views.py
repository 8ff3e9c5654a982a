"""The base classes of the API's views: lists, single objects, versions and errors."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.utils.cache import patch_vary_headers
from drf_spectacular.types import OpenApiTypes
from rest_framework.exceptions import APIException, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSetMixin

from watcher_site.api import versions
from watcher_site.api.errors import BodyTooLarge, LengthRequired, NotAcceptableHere
from watcher_site.api.paging import Offer, Page, read_page, read_uuid, sort_values
from watcher_site.api.permissions import denied
from watcher_site.api.serializers import ResourceSerializer, Row
from watcher_site.authorization.enforcement import decide
from watcher_site.database.queries import Placeholder, Query
from watcher_site.database.records import Record
from watcher_site.history.recording import describe_refusal, is_recorded, record_refusal
from watcher_site.refusals import Invalid, NotFound, Refused

FORBIDDEN = 403
TRUE = {"1", "true", "yes"}
# Browsers must not interpret API responses as pages: they load no resources and cannot be framed.
DATA_ONLY_POLICY = "default-src 'none'; frame-ancestors 'none'"


class VersionedView(APIView):
    """A view whose responses carry the version headers and Vary."""

    since: versions.Version = versions.MINIMUM

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        length = request.META.get("CONTENT_LENGTH")
        if "HTTP_TRANSFER_ENCODING" in request.META and length is None:
            raise LengthRequired
        if length and length.isdecimal() and int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise BodyTooLarge
        if versions.used_by(request) < self.since:
            raise NotAcceptableHere(self.since)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        for name, value in versions.response_headers(getattr(request, "version", None)).items():
            final[name] = value
        patch_vary_headers(final, [versions.HEADER])
        final["Content-Security-Policy"] = DATA_ONLY_POLICY
        return final


class ResourceView(ViewSetMixin, VersionedView):
    """The lists and single objects of one kind of resource.

    Subclasses set the ``serializer_class``, the ``model``, its name in messages (``title``) and in policies
    (``policy``), their ``filters`` (methods ``filter_<name>(queryset, value)``) and ``sort_keys`` (the column of each
    key). A filter that is ``repeatable`` gets the list of its values. ``sort_direction`` is the default of `sort_dir`.
    ``sort_keys_formerly`` has the columns of keys before a version. ``sort_expressions`` build expressions for sort
    keys without a column. ``arguments_since`` has the version that added a filter, a sort key, or ``sort`` (several
    keys).

    ``named_in_paths`` is the resource's name in messages about paths, if it differs from ``policy``.

    For the OpenAPI document: the identifiers in paths (``identifiers``, and ``identifiers_since``), the type of the
    markers of lists (``marker_type``), JSON Schemas of filters (``filter_schemas``), the serializers of bodies
    (``bodies``, and ``bodies_since`` for those that are newer than the action), the status and serializer of responses
    that are not the resource itself (``answers``), the media types of responses that are not JSON (``media_types``),
    the version that added an action (``actions_since``), the query parameters of lists that have no pages
    (``query_parameters``) and of other actions (``arguments``), the reading actions that the state of the object may
    forbid (``judging``), and an example of a patch operation (``example_step``).
    """

    serializer_class: type[ResourceSerializer]
    model: Any
    title: str
    policy: str
    filters: list[str] = []
    repeatable: frozenset[str] = frozenset()
    sort_keys: dict[str, str] = {}
    sort_direction: str = "asc"
    sort_keys_formerly: dict[str, tuple[versions.Version, str]] = {}
    sort_expressions: dict[str, Callable[[], Any]] = {}
    arguments_since: dict[str, versions.Version] = {}
    permissions_required: dict[str, str] = {}
    identifiers: tuple[str, ...] = ("uuid",)
    marker_type = OpenApiTypes.UUID
    filter_schemas: dict[str, dict[str, Any]] = {}
    named_in_paths: str = ""
    identifiers_since: dict[str, versions.Version] = {}
    bodies: dict[str, Any] = {}
    bodies_since: dict[str, versions.Version] = {}
    answers: dict[str, tuple[int, Any]] = {}
    media_types: dict[str, tuple[str, ...]] = {}
    actions_since: dict[str, versions.Version] = {}
    query_parameters: list[Any] = []
    arguments: dict[str, list[Any]] = {}
    judging: frozenset[str] = frozenset()
    example_step: dict[str, Any] = {}
    policy_actions = {
        "short_list": "get_all",
        "detailed_list": "detail",
        "retrieve": "get",
        "create": "create",
        "partial_update": "update",
        "destroy": "delete",
    }
    # The events of actions that are not named after their policy, and of patches by the requested state. Events of the
    # parts of an object are recorded as within it.
    history_events: dict[str, str] = {}
    history_events_within: frozenset[str] = frozenset()
    history_events_by_state: dict[str, str] = {}
    detail = False
    action = ""
    # The attributes of the object of the request, for the rules of a policy file.
    policy_target: Mapping[str, Any] = {}

    def policy_name(self) -> str:
        return f"{self.policy}:{self.policy_actions.get(self.action or '', self.action)}"

    def history_event(self) -> str:
        """Return the event that history records for this request."""
        if self.request.method in SAFE_METHODS:
            return f"{self.policy}.view"
        event = self.history_events.get(self.action or "", self.policy_name().replace(":", "."))
        if not self.history_events_by_state or not event.endswith(".update"):
            return event
        return self.history_events_by_state.get(requested_state(self.document()), event)

    def document(self) -> Any:
        """Return the parsed body of the request, or None if it is invalid."""
        try:
            return self.request.data
        except APIException:
            return None

    def handle_exception(self, problem: Exception) -> Response:
        response = super().handle_exception(problem)
        if self.action and self.request.method in SAFE_METHODS:
            record_refused_reading(self, problem, response)
        elif self.action and is_refusal(problem, response):
            self.record_refused_change(problem)
        return response

    def record_refused_change(self, problem: Exception) -> None:
        """Record the refusal of this request in history."""
        identifier = self.kwargs.get("identifier", "")
        try:
            target = (identifier and self.find_present(identifier)) or identifier
        except Refused:
            target = identifier
        if self.action in self.history_events_within:
            record_refusal(self.history_event(), None, describe_exception(problem), within=target)
        else:
            record_refusal(self.history_event(), target, describe_exception(problem))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.detail = "identifier" in kwargs
        refuse_nul(request)
        super().initial(request, *args, **kwargs)

    # Parts of the OpenAPI document that differ between versions

    @classmethod
    def query_parameters_at(cls, version: versions.Version) -> list[Any]:
        return cls.query_parameters

    @classmethod
    def answers_at(cls, version: versions.Version) -> dict[str, tuple[int, Any]]:
        return cls.answers

    # Lists

    def short_list(self, request: Request) -> Response:
        return self.answer_list(request, detailed=False)

    def detailed_list(self, request: Request) -> Response:
        return self.answer_list(request, detailed=True)

    def answer_list(self, request: Request, detailed: bool) -> Response:
        page = read_page(request.query_params, self.offer(versions.used_by(request)))
        queryset = self.sortable(page, self.get_queryset())
        for name, value in page.arguments.items():
            queryset = getattr(self, f"filter_{name}")(queryset, value)
        rows = page.rows(queryset, self.place(page), partial(self.read, detailed=detailed))
        return Response(self.envelope(page, rows, detailed))

    @classmethod
    @cache
    def offer(cls, version: versions.Version) -> Offer:
        """Return the query arguments that lists accept in a version."""
        former = {name: column for name, (until, column) in cls.sort_keys_formerly.items() if version < until}
        keys = {name: column for name, column in (cls.sort_keys | former).items() if version >= cls.since_of(name)}
        return Offer(
            sort_keys={"id": "pk"} | keys,
            filters=[name for name in cls.filters if version >= cls.since_of(name)],
            repeatable=cls.repeatable,
            direction=cls.sort_direction,
            several_keys="sort" in cls.arguments_since and version >= cls.arguments_since["sort"],
        )

    @classmethod
    def since_of(cls, argument: str) -> versions.Version:
        return cls.arguments_since.get(argument, versions.MINIMUM)

    def sortable(self, page: Page, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Add the expressions for the sort order of a page."""
        columns = {key.column for key in page.keys}
        expressions = {name: make() for name, make in self.sort_expressions.items() if name in columns}
        return queryset.annotate(**expressions) if expressions else queryset

    def envelope(self, page: Page, rows: list[Row], detailed: bool) -> dict[str, Any]:
        collection = self.serializer_class.Meta.collection
        response: dict[str, Any] = {collection: rows}
        if len(rows) == page.limit:
            response["next"] = page.next_link(self.address_of_list(detailed), rows[-1].get("uuid") or rows[-1]["id"])
        return response

    def address_of_list(self, detailed: bool) -> str:
        return f"{self.host()}/v1/{self.serializer_class.Meta.collection}{'/detail' if detailed else ''}"

    def place(self, page: Page) -> Sequence[Any] | None:
        if page.marker is None:
            return None
        return sort_values(self.sortable(page, self.find_marker(page.marker)), page, self.missing(page.marker))

    def find_marker(self, marker: str) -> QuerySet[Any]:
        return self.get_queryset().filter(uuid=read_uuid(marker, "marker"))

    # Single objects

    def retrieve(self, request: Request, identifier: str) -> Response:
        return Response(self.get_row(request, identifier))

    def get_row(self, request: Request, identifier: str) -> Row:
        """Return the row of the object in the path, if this user may read it.

        Raises:
            NotFound: it does not exist. This is checked before the permission, as OpenStack's servers do.
        """
        for row in self.find(identifier):
            self.check_object_permissions(request, row)
            return row
        raise NotFound(self.missing(identifier))

    def find(self, identifier: str) -> list[Row]:
        """Return the row of the object in the path, or an empty list."""
        return self.read(self.lookup(identifier)[:1], detailed=True)

    def uuid_field(self) -> str:
        """Return the name of the UUID in a path, for messages."""
        return f"{self.named_in_paths or self.policy}_uuid"

    def lookup(self, identifier: str) -> QuerySet[Any]:
        """Return the queryset that selects the object in the path."""
        return self.get_queryset().filter(uuid=read_uuid(identifier, self.uuid_field()))

    def get_object(self, request: Request, identifier: str) -> Any:
        """Return the object in the path, if this user may send the request for it. Deleted objects are not found.

        Raises:
            NotFound: it does not exist. This is checked before the permission, as OpenStack's servers do.
        """
        found = self.find_present(identifier)
        if found is None:
            raise NotFound(self.missing(identifier))
        self.check_object_permissions(request, found)
        return found

    def find_present(self, identifier: str) -> Any:
        return self.lookup(identifier).filter(deleted_at=None).first()

    def require_version(self, request: Request) -> None:
        """Raise `NotAcceptableHere` if the version of the request does not have this action of the view."""
        since = self.actions_since[self.action]
        if versions.used_by(request) < since:
            raise NotAcceptableHere(since)

    def require(self, request: Request, permission: str) -> None:
        """Require a permission that depends on the content of the body.

        Raises:
            PermissionDenied: the user does not have it, and no rule of the policy file allows the request.
        """
        decision = None
        if settings.POLICY_FILE:
            decision = decide(self.policy_name(), request.user, self.policy_target, needed=permission)
        if not (request.user.has_perm(permission) if decision is None else decision):
            raise denied(self)

    def missing(self, identifier: Any) -> str:
        return f"{self.title} {identifier} could not be found"

    # Lists and single objects.

    def get_queryset(self) -> QuerySet[Any]:
        return self.model.objects.all() if self.shows_deleted() else self.model.objects.present()

    def shows_deleted(self) -> bool:
        return self.request.META.get("HTTP_X_SHOW_DELETED", "").lower() in TRUE

    def read(self, queryset: QuerySet[Any], detailed: bool) -> list[Row]:
        rows = self.serializer_class.read(queryset, versions.used_by(self.request), detailed, self.host())
        self.conceal(rows)
        return rows

    def conceal(self, rows: list[Row]) -> None:
        """Remove from rows the values that the user may not read."""

    def host(self) -> str:
        return f"{self.request.scheme}://{self.request.get_host()}"

    def show(self, found: Record) -> Row:
        """Return the current row of an object.

        Raises:
            NotFound: it was removed permanently at the same time.
        """
        for row in self.read(self.model.objects.filter(pk=found.pk), detailed=True):
            return row
        raise NotFound(self.missing(found.uuid))

    def created(self, found: Record) -> Response:
        location = f"{self.host()}/v1/{self.serializer_class.Meta.collection}/{found.uuid}"
        return Response(self.show(found), 201, headers={"Location": location})


class ComposedLookup:
    """Looks up single objects by UUID with queries that are compiled once for each version, for frequent requests."""

    def find(self: Any, identifier: str) -> list[Row]:
        rows: list[Row] = self.read_named(partial(self.read_rows, deleted=self.shows_deleted()), identifier)
        return rows

    def find_present(self: Any, identifier: str) -> Any:
        found = self.read_named(object_by_uuid(self.model).rows, identifier)
        return found[0] if found else None

    def read_named(self: Any, read: Callable[..., list[Any]], identifier: str) -> list[Any]:
        """Return the result of ``read(uuid=…)`` for the object in the path."""
        return read(uuid=read_uuid(identifier, self.uuid_field()))

    def show(self: Any, found: Record) -> Row:
        for row in self.read_rows(found.uuid, deleted=True):
            return row
        raise NotFound(self.missing(found.uuid))

    def read_rows(self: Any, uuid: UUID, deleted: bool) -> list[Row]:
        version = versions.used_by(self.request)
        values = row_by_uuid(self.serializer_class, self.model, version, deleted).rows(uuid=uuid)
        rows: list[Row] = self.serializer_class.finish(values, version, True, self.host())
        self.conceal(rows)
        return rows


@cache
def object_by_uuid(model: Any) -> Query:
    return Query(model.objects.present().filter(uuid=Placeholder("uuid", model._meta.get_field("uuid"))))


@cache
def row_by_uuid(
    serializer_class: type[ResourceSerializer], model: Any, version: versions.Version, deleted: bool
) -> Query:
    queryset = model.objects.all() if deleted else model.objects.present()
    uuid = Placeholder("uuid", model._meta.get_field("uuid"))
    return Query(serializer_class.select(queryset.filter(uuid=uuid), version, detailed=True))


class NamedLookup:
    """Looks up single objects and markers by database id, UUID or name."""

    identifiers: tuple[str, ...] = ("uuid", "name", "id")
    marker_type = OpenApiTypes.STR

    def lookup(self: Any, identifier: str) -> QuerySet[Any]:
        return self.get_queryset().named(identifier)

    def find_marker(self: Any, marker: str) -> QuerySet[Any]:
        return self.get_queryset().named(marker)


def requested_state(document: Any) -> str:
    """Return the state that a patch requests, or an empty string."""
    steps = document if isinstance(document, list) else []
    requested = [step.get("value") for step in steps if isinstance(step, dict) and step.get("path") == "/state"]
    return str(requested[-1]).upper() if requested else ""


def is_refusal(problem: Exception, response: Response) -> bool:
    """Return whether history records this response: a permission is missing, or a state forbids the request."""
    return response.status_code == FORBIDDEN or is_recorded(problem)


def record_refused_reading(view: Any, problem: Exception, response: Response) -> None:
    """Record in history that a read was refused, in one statement: the object is not looked up."""
    if response.status_code == FORBIDDEN:
        record_refusal(view.history_event(), view.kwargs.get("identifier", ""), describe_exception(problem))


def describe_exception(problem: Exception) -> str:
    return str(problem.detail) if isinstance(problem, PermissionDenied) else describe_refusal(problem)


def refuse_nul(request: Request) -> None:
    """Refuse a path or a query with a NUL character, which databases do not accept."""
    query = request.META.get("QUERY_STRING", "")
    if "\0" in request.path or "\0" in query or "%00" in query:
        raise Invalid("The URL must not contain NUL characters.")
