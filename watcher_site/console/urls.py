"""The console: every page lives under one path, as the paths without a prefix belong to the API."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path

from audits.console.overview import Overview
from watcher_site.console import history, subscriptions, undelivered
from watcher_site.console.resumable_forms import Login
from watcher_site.history.reading import FORMATS

history_patterns = [
    path("", history.HistoryList.as_view(), name="list"),
    re_path(rf"^export\.(?P<kind>{'|'.join(FORMATS)})$", history.Export.as_view(), name="export"),
]
notification_patterns = [
    path("", subscriptions.SubscriptionList.as_view(), name="list"),
    path("new/", subscriptions.NewSubscription.as_view(), name="new"),
    path("undelivered/", undelivered.UndeliveredList.as_view(), name="undelivered"),
    path("undelivered/resend/", undelivered.ResendAll.as_view(), name="resend-all"),
    path("undelivered/<uuid:uuid>/resend/", undelivered.Resend.as_view(), name="resend"),
    path("undelivered/<uuid:uuid>/delete/", undelivered.DeleteUndelivered.as_view(), name="delete-undelivered"),
    path("<uuid:uuid>/", subscriptions.SubscriptionPage.as_view(), name="detail"),
    path("<uuid:uuid>/change/", subscriptions.ChangeSubscription.as_view(), name="change"),
    path("<uuid:uuid>/test/", subscriptions.SendTest.as_view(), name="test"),
    path("<uuid:uuid>/secret/", subscriptions.RenewSecret.as_view(), name="secret"),
    path("<uuid:uuid>/delete/", subscriptions.DeleteSubscription.as_view(), name="delete"),
]

urlpatterns = [
    path("", Overview.as_view(), name="home"),
    path("login/", Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("audits/", include("audits.urls")),
    path("history/", include((history_patterns, "history"))),
    path("actions/", include("actions.urls")),
    path("notifications/", include((notification_patterns, "notifications"))),
    path("", include("plans.urls")),
]
