from django.urls import path

from cluster.views import ComputeNodeList, ComputeNodePage, PoolList, ServerList, ServerPage, VolumeList

app_name = "cluster"
urlpatterns = [
    path("nodes/", ComputeNodeList.as_view(), name="nodes"),
    path("nodes/<uuid:uuid>/", ComputeNodePage.as_view(), name="node"),
    path("nodes/pools/", PoolList.as_view(), name="pools"),
    path("nodes/volumes/", VolumeList.as_view(), name="volumes"),
    path("servers/", ServerList.as_view(), name="servers"),
    path("servers/<uuid:uuid>/", ServerPage.as_view(), name="server"),
]
