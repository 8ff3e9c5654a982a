from django.urls import path

from audits.views import AuditList, AuditPage, Cancel, Delete, NewAudit

app_name = "audits"
urlpatterns = [
    path("", AuditList.as_view(), name="list"),
    path("new/", NewAudit.as_view(), name="create"),
    path("<uuid:uuid>/", AuditPage.as_view(), name="detail"),
    path("<uuid:uuid>/cancel/", Cancel.as_view(), name="cancel"),
    path("<uuid:uuid>/delete/", Delete.as_view(), name="delete"),
]
