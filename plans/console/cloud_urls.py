from django.urls import path

from cluster.console.infrastructure import ComputeNodeList, ComputeNodePage, PoolList, VolumeList
from cluster.console.policies import DeletePolicy, NewPolicy, PolicyList, PolicyPage
from cluster.console.profiles import ProfileList, ProfilePage
from plans.console.clusters.nodes import NodeList, NodePage
from plans.console.servers.pages import ServerList, ServerPage

app_name = "cluster"
urlpatterns = [
    path("nodes/", ComputeNodeList.as_view(), name="nodes"),
    path("nodes/<uuid:uuid>/", ComputeNodePage.as_view(), name="node"),
    path("nodes/pools/", PoolList.as_view(), name="pools"),
    path("nodes/volumes/", VolumeList.as_view(), name="volumes"),
    path("clusters/nodes/", NodeList.as_view(), name="members"),
    path("clusters/nodes/<uuid:uuid>/", NodePage.as_view(), name="member"),
    path("clusters/profiles/", ProfileList.as_view(), name="profiles"),
    path("clusters/profiles/<uuid:uuid>/", ProfilePage.as_view(), name="profile"),
    path("clusters/policies/", PolicyList.as_view(), name="policies"),
    path("clusters/policies/new/", NewPolicy.as_view(), name="new-policy"),
    path("clusters/policies/<uuid:uuid>/", PolicyPage.as_view(), name="policy"),
    path("clusters/policies/<uuid:uuid>/delete/", DeletePolicy.as_view(), name="delete-policy"),
    path("servers/", ServerList.as_view(), name="servers"),
    path("servers/<uuid:uuid>/", ServerPage.as_view(), name="server"),
]
