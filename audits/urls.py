from django.urls import path

from audits.views import AuditList, AuditPage, Cancel

app_name = "audits"
urlpatterns = [
    path("", AuditList.as_view(), name="list"),
    path("<uuid:uuid>/", AuditPage.as_view(), name="detail"),
    path("<uuid:uuid>/cancel/", Cancel.as_view(), name="cancel"),
]
