from django.urls import path
from django.views.generic import RedirectView

from cluster.member_views import NodeList, NodePage, ProfileList, ProfilePage
from cluster.views import ComputeNodeList, ComputeNodePage, PoolList, ServerList, ServerPage, VolumeList

app_name = "cluster"
urlpatterns = [
    path("nodes/", ComputeNodeList.as_view(), name="nodes"),
    path("nodes/<uuid:uuid>/", ComputeNodePage.as_view(), name="node"),
    path("nodes/pools/", PoolList.as_view(), name="pools"),
    path("nodes/volumes/", VolumeList.as_view(), name="volumes"),
    path("clusters/", RedirectView.as_view(pattern_name="cluster:members"), name="clusters"),
    path("clusters/nodes/", NodeList.as_view(), name="members"),
    path("clusters/nodes/<uuid:uuid>/", NodePage.as_view(), name="member"),
    path("clusters/profiles/", ProfileList.as_view(), name="profiles"),
    path("clusters/profiles/<uuid:uuid>/", ProfilePage.as_view(), name="profile"),
    path("servers/", ServerList.as_view(), name="servers"),
    path("servers/<uuid:uuid>/", ServerPage.as_view(), name="server"),
]
