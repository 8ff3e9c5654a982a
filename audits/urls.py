from django.urls import path

from audits.console.views import AuditList, AuditPage, Cancel, Delete, NewAudit, Resume, Suspend
from audits.console.waiting_list import WaitingList

app_name = "audits"
urlpatterns = [
    path("", AuditList.as_view(), name="list"),
    path("waiting/", WaitingList.as_view(), name="waiting"),
    path("new/", NewAudit.as_view(), name="create"),
    path("<uuid:uuid>/", AuditPage.as_view(), name="detail"),
    path("<uuid:uuid>/cancel/", Cancel.as_view(), name="cancel"),
    path("<uuid:uuid>/suspend/", Suspend.as_view(), name="suspend"),
    path("<uuid:uuid>/resume/", Resume.as_view(), name="resume"),
    path("<uuid:uuid>/delete/", Delete.as_view(), name="delete"),
]
