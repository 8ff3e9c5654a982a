from django.urls import path

from watcher_site.console.notifications.subscriptions import (
    ChangeSubscription,
    DeleteSubscription,
    NewSubscription,
    RenewSecret,
    SendTest,
    SubscriptionList,
    SubscriptionPage,
)
from watcher_site.console.notifications.undelivered import DeleteUndelivered, Resend, ResendAll, UndeliveredList

app_name = "notifications"
urlpatterns = [
    path("", SubscriptionList.as_view(), name="list"),
    path("new/", NewSubscription.as_view(), name="new"),
    path("undelivered/", UndeliveredList.as_view(), name="undelivered"),
    path("undelivered/resend/", ResendAll.as_view(), name="resend-all"),
    path("undelivered/<uuid:uuid>/resend/", Resend.as_view(), name="resend"),
    path("undelivered/<uuid:uuid>/delete/", DeleteUndelivered.as_view(), name="delete-undelivered"),
    path("<uuid:uuid>/", SubscriptionPage.as_view(), name="detail"),
    path("<uuid:uuid>/change/", ChangeSubscription.as_view(), name="change"),
    path("<uuid:uuid>/test/", SendTest.as_view(), name="test"),
    path("<uuid:uuid>/secret/", RenewSecret.as_view(), name="secret"),
    path("<uuid:uuid>/delete/", DeleteSubscription.as_view(), name="delete"),
]
