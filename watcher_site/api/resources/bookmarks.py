"""The links called ``bookmark``: a browser that follows one comes to the page, an API client to the object."""

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import re_path, resolve
from django.views.decorators.csrf import csrf_exempt

from watcher_site.api.resources.discovery import wants_html

PAGES = {
    "audits": "audits:detail",
    "action_plans": "plans:detail",
    "actions": "actions:detail",
    "clusters": "clusters:detail",
    "nodes": "cluster:member",
    "servers": "cluster:server",
    "profiles": "cluster:profile",
    "policies": "cluster:policy",
}


@csrf_exempt  # The API's own views see to it, for sessions.
def bookmark(request: HttpRequest, collection: str, uuid: str) -> HttpResponseBase:
    if request.method == "GET" and wants_html(request):
        return redirect(PAGES[collection], uuid=UUID(uuid))
    found = resolve(f"/v1{request.path}")
    answer: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
    return answer


COLLECTION = f"(?P<collection>{'|'.join(PAGES)})"
DASHED = "(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
urlpatterns = [re_path(f"^{COLLECTION}/{DASHED}/?$", bookmark)]
