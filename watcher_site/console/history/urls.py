from django.urls import path, re_path

from watcher_site.console.history.views import Export, HistoryList
from watcher_site.history.exporting import FORMATS

app_name = "history"
urlpatterns = [
    path("", HistoryList.as_view(), name="list"),
    re_path(rf"^export\.(?P<kind>{'|'.join(FORMATS)})$", Export.as_view(), name="export"),
]
