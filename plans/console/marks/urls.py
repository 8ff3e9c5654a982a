from django.urls import path

from plans.console.marks.operations import (
    ClearNode,
    ClearResource,
    ClearServer,
    ClearStack,
    MarkNode,
    MarkResource,
    MarkServer,
    MarkStack,
)

app_name = "marks"
urlpatterns = [
    path("servers/<uuid:uuid>/mark/", MarkServer.as_view(), name="mark-server"),
    path("servers/<uuid:uuid>/clear/", ClearServer.as_view(), name="clear-server"),
    path("nodes/<uuid:uuid>/mark/", MarkNode.as_view(), name="mark-node"),
    path("nodes/<uuid:uuid>/clear/", ClearNode.as_view(), name="clear-node"),
    path("stacks/<uuid:uuid>/mark/", MarkStack.as_view(), name="mark-stack"),
    path("stacks/<uuid:uuid>/clear/", ClearStack.as_view(), name="clear-stack"),
    path("resources/<uuid:uuid>/mark/", MarkResource.as_view(), name="mark-resource"),
    path("resources/<uuid:uuid>/clear/", ClearResource.as_view(), name="clear-resource"),
]
