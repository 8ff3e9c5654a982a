"""The console: every page lives under one path, as the paths without a prefix belong to the API."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from audits.overview import Overview

urlpatterns = [
    path("", Overview.as_view(), name="home"),
    path("login/", LoginView.as_view(template_name="login.html", redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("audits/", include("audits.urls")),
    path("plans/", include("plans.urls")),
    path("actions/", include("actions.urls")),
    path("", include("cluster.urls")),
]
