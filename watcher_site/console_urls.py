"""The console: every page lives under one path, as the paths without a prefix belong to the API."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from audits.overview import Overview
from watcher_site.kept_forms import Login

urlpatterns = [
    path("", Overview.as_view(), name="home"),
    path("login/", Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("audits/", include("audits.urls")),
    path("plans/", include("plans.urls")),
    path("history/", include("watcher_site.history.urls")),
    path("actions/", include("actions.urls")),
    path("exclusions/", include("plans.exclusions.urls")),
    path("clusters/", include("plans.clusters.urls")),
    path("stacks/", include("plans.stacks.urls")),
    path("marks/", include("plans.marks.urls")),
    path("notifications/", include("watcher_site.notifications.urls")),
    path("", include("cluster.urls")),
]
