from django.urls import path

from actions.console.views import (
    ActionList,
    ActionPage,
    Cancel,
    ChangeReason,
    RestoreAction,
    Resume,
    SkipAction,
    Suspend,
)

app_name = "actions"
urlpatterns = [
    path("", ActionList.as_view(), name="list"),
    path("<uuid:uuid>/", ActionPage.as_view(), name="detail"),
    path("<uuid:uuid>/skip/", SkipAction.as_view(), name="skip"),
    path("<uuid:uuid>/restore/", RestoreAction.as_view(), name="restore"),
    path("<uuid:uuid>/reason/", ChangeReason.as_view(), name="reason"),
    path("<uuid:uuid>/suspend/", Suspend.as_view(), name="suspend"),
    path("<uuid:uuid>/resume/", Resume.as_view(), name="resume"),
    path("<uuid:uuid>/cancel/", Cancel.as_view(), name="cancel"),
]
