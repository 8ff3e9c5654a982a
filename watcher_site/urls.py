"""The URLs of the site: the API (``/``, ``/v1``), the console (``/console/``) and the documentation (``/docs/``)."""

from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView

from watcher_site.api import urls as api
from watcher_site.api.openapi.documentation import DocumentationPage, DocumentView
from watcher_site.api.resources import discovery
from watcher_site.api.resources.health import MetricsView, healthz, readyz

# The most frequent requests come first, because patterns are tried in order.
urlpatterns: list[URLPattern | URLResolver] = [
    *discovery.bookmarks,
    *api.urlpatterns,
    path("", discovery.root),
    # Browsers request it for responses that specify no icon, such as those of the API.
    path("favicon.ico", RedirectView.as_view(url=static("watcher_site/icon.svg"))),
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", MetricsView.as_view()),
    path("v1", discovery.VersionRoot.as_view()),
    path("v1/", discovery.VersionRoot.as_view()),
    re_path(r"^orchestration(?:/|$)", include("plans.mounts.orchestration.urls")),
    path("v1/openapi.json", DocumentView.as_view(), name="openapi"),
    path("v1/docs/", DocumentationPage.as_view(), name="documentation"),
    path("compute/", include("plans.mounts.compute.urls")),
    path("identity/", include("watcher_site.api.mounts")),
    path("docs", RedirectView.as_view(pattern_name="docs:index")),
    path("docs/", include(("watcher_site.documentation.views", "docs"))),
    path("console", RedirectView.as_view(pattern_name="home")),
    path("console/", include("watcher_site.console.urls")),
]

handler400 = "watcher_site.api.errors.bad_request"
handler404 = "watcher_site.api.errors.not_found"
handler403 = "watcher_site.api.errors.forbidden"
handler500 = "watcher_site.api.errors.server_error"
