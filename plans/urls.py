from django.urls import path

from plans.console.preflight import PreflightPage
from plans.console.restore import Restore
from plans.console.schedule import Schedule
from plans.console.skips import Skip
from plans.console.suspension import Resume, Suspend
from plans.console.views import ActionPlanList, ActionPlanPage, Cancel, Continue, Delete, OnFailure, Start

app_name = "plans"
urlpatterns = [
    path("", ActionPlanList.as_view(), name="list"),
    path("<uuid:uuid>/", ActionPlanPage.as_view(), name="detail"),
    path("<uuid:uuid>/preflight/", PreflightPage.as_view(), name="preflight"),
    path("<uuid:uuid>/start/", Start.as_view(), name="start"),
    path("<uuid:uuid>/schedule/", Schedule.as_view(), name="schedule"),
    path("<uuid:uuid>/skip/", Skip.as_view(), name="skip"),
    path("<uuid:uuid>/restore/", Restore.as_view(), name="restore"),
    path("<uuid:uuid>/continue/", Continue.as_view(), name="continue"),
    path("<uuid:uuid>/on-failure/", OnFailure.as_view(), name="on-failure"),
    path("<uuid:uuid>/suspend/", Suspend.as_view(), name="suspend"),
    path("<uuid:uuid>/resume/", Resume.as_view(), name="resume"),
    path("<uuid:uuid>/cancel/", Cancel.as_view(), name="cancel"),
    path("<uuid:uuid>/delete/", Delete.as_view(), name="delete"),
]
