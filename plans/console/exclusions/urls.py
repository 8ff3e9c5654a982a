from django.urls import path

from plans.console.exclusions.pages import (
    ChangeExclusion,
    DeleteExclusion,
    DisableExclusion,
    EnableExclusion,
    ExclusionList,
    ExclusionPage,
    NewExclusion,
)

app_name = "exclusions"
urlpatterns = [
    path("", ExclusionList.as_view(), name="list"),
    path("new/", NewExclusion.as_view(), name="new"),
    path("<uuid:uuid>/", ExclusionPage.as_view(), name="detail"),
    path("<uuid:uuid>/change/", ChangeExclusion.as_view(), name="change"),
    path("<uuid:uuid>/enable/", EnableExclusion.as_view(), name="enable"),
    path("<uuid:uuid>/disable/", DisableExclusion.as_view(), name="disable"),
    path("<uuid:uuid>/delete/", DeleteExclusion.as_view(), name="delete"),
]
