from django.urls import path

from plans.mark_verbs import ClearNode, ClearServer, MarkNode, MarkServer

app_name = "marks"
urlpatterns = [
    path("servers/<uuid:uuid>/mark/", MarkServer.as_view(), name="mark-server"),
    path("servers/<uuid:uuid>/clear/", ClearServer.as_view(), name="clear-server"),
    path("nodes/<uuid:uuid>/mark/", MarkNode.as_view(), name="mark-node"),
    path("nodes/<uuid:uuid>/clear/", ClearNode.as_view(), name="clear-node"),
]
