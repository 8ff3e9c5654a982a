"""The console: every page lives under one path, as the paths without a prefix belong to the API."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from audits.console.overview import Overview
from watcher_site.console.resumable_forms import Login

urlpatterns = [
    path("", Overview.as_view(), name="home"),
    path("login/", Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("audits/", include("audits.urls")),
    path("history/", include("watcher_site.console.history.urls")),
    path("actions/", include("actions.urls")),
    path("notifications/", include("watcher_site.console.notifications.urls")),
    path("", include("plans.urls")),
]
