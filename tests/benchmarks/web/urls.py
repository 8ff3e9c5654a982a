"""The URLs of the site and of the references."""

from django.urls import path

from tests.benchmarks.web import references
from watcher_site.urls import urlpatterns as site

urlpatterns = [
    path("reference/bare", references.bare),
    path("reference/validated", references.validated),
    path("reference/query", references.query),
    path("reference/actions", references.actions),
    path("reference/action_plans", references.action_plans),
    *site,
]

handler400 = "watcher_site.api.errors.bad_request"
handler403 = "watcher_site.api.errors.forbidden"
handler404 = "watcher_site.api.errors.not_found"
handler500 = "watcher_site.api.errors.server_error"
