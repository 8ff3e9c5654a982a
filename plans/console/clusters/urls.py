from django.urls import path

from plans.console.clusters.operations import (
    Attach,
    Change,
    Check,
    CheckNode,
    Delete,
    DeleteNode,
    Detach,
    Disable,
    Enable,
    Recover,
    RecoverNode,
    Resize,
    ScaleIn,
    ScaleOut,
)
from plans.console.clusters.pages import ClusterList, ClusterPage, NewCluster

app_name = "clusters"
urlpatterns = [
    path("", ClusterList.as_view(), name="list"),
    path("new/", NewCluster.as_view(), name="create"),
    path("<uuid:uuid>/", ClusterPage.as_view(), name="detail"),
    path("<uuid:uuid>/scale-out/", ScaleOut.as_view(), name="scale-out"),
    path("<uuid:uuid>/scale-in/", ScaleIn.as_view(), name="scale-in"),
    path("<uuid:uuid>/resize/", Resize.as_view(), name="resize"),
    path("<uuid:uuid>/check/", Check.as_view(), name="check"),
    path("<uuid:uuid>/recover/", Recover.as_view(), name="recover"),
    path("<uuid:uuid>/change/", Change.as_view(), name="change"),
    path("<uuid:uuid>/delete/", Delete.as_view(), name="delete"),
    path("<uuid:uuid>/attach/", Attach.as_view(), name="attach"),
    path("attached/<uuid:uuid>/enable/", Enable.as_view(), name="enable"),
    path("attached/<uuid:uuid>/disable/", Disable.as_view(), name="disable"),
    path("attached/<uuid:uuid>/detach/", Detach.as_view(), name="detach"),
    path("nodes/<uuid:uuid>/check/", CheckNode.as_view(), name="check-node"),
    path("nodes/<uuid:uuid>/recover/", RecoverNode.as_view(), name="recover-node"),
    path("nodes/<uuid:uuid>/delete/", DeleteNode.as_view(), name="delete-node"),
]
