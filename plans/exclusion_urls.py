from django.urls import path

from plans.exclusion_pages import ChangeExclusion, DeleteExclusion, ExclusionList, ExclusionPage, NewExclusion

app_name = "exclusions"
urlpatterns = [
    path("", ExclusionList.as_view(), name="list"),
    path("new/", NewExclusion.as_view(), name="new"),
    path("<uuid:uuid>/", ExclusionPage.as_view(), name="detail"),
    path("<uuid:uuid>/change/", ChangeExclusion.as_view(), name="change"),
    path("<uuid:uuid>/delete/", DeleteExclusion.as_view(), name="delete"),
]
