"""The URLs of the pages of plans, and of the resources that plans change, with a namespace for each group."""

from django.urls import include, path

from cluster.console import infrastructure, policies, profiles
from plans.console import (
    exclusions,
    marks,
    preflight,
    schedule,
    servers,
    start,
    views,
)
from plans.console.clusters import operations, pages
from plans.console.projects import clusters as own_clusters
from plans.console.projects import servers as own_servers
from plans.console.projects import stacks as own_stacks
from plans.console.pruning import skips
from plans.console.stacks import operations as stack_operations
from plans.console.stacks import pages as stacks
from plans.console.times.pages import TimelinePage

PLANS = [
    path("", views.ActionPlanList.as_view(), name="list"),
    path("<uuid:uuid>/", views.ActionPlanPage.as_view(), name="detail"),
    path("<uuid:uuid>/preflight/", preflight.PreflightPage.as_view(), name="preflight"),
    path("<uuid:uuid>/timeline/", TimelinePage.as_view(), name="timeline"),
    path("<uuid:uuid>/start/", start.Start.as_view(), name="start"),
    path("<uuid:uuid>/approve/", views.Approve.as_view(), name="approve"),
    path("<uuid:uuid>/withdraw-approval/", views.WithdrawApproval.as_view(), name="withdraw-approval"),
    path("<uuid:uuid>/schedule/", schedule.Schedule.as_view(), name="schedule"),
    path("<uuid:uuid>/skip/", skips.Skip.as_view(), name="skip"),
    path("<uuid:uuid>/restore/", skips.Restore.as_view(), name="restore"),
    path("<uuid:uuid>/continue/", views.Continue.as_view(), name="continue"),
    path("<uuid:uuid>/on-failure/", views.OnFailure.as_view(), name="on-failure"),
    path("<uuid:uuid>/suspend/", views.Suspend.as_view(), name="suspend"),
    path("<uuid:uuid>/resume/", views.Resume.as_view(), name="resume"),
    path("<uuid:uuid>/cancel/", views.Cancel.as_view(), name="cancel"),
    path("<uuid:uuid>/delete/", views.Delete.as_view(), name="delete"),
]
PRUNING = [
    path("skip/", skips.Skip.as_view(), name="skip"),
    path("restore/", skips.Restore.as_view(), name="restore"),
]
EXCLUSIONS = [
    path("", exclusions.ExclusionList.as_view(), name="list"),
    path("new/", exclusions.NewExclusion.as_view(), name="new"),
    path("<uuid:uuid>/", exclusions.ExclusionPage.as_view(), name="detail"),
    path("<uuid:uuid>/change/", exclusions.ChangeExclusion.as_view(), name="change"),
    path("<uuid:uuid>/enable/", exclusions.EnableExclusion.as_view(), name="enable"),
    path("<uuid:uuid>/disable/", exclusions.DisableExclusion.as_view(), name="disable"),
    path("<uuid:uuid>/delete/", exclusions.DeleteExclusion.as_view(), name="delete"),
]
CLUSTERS = [
    path("", pages.ClusterList.as_view(), name="list"),
    path("new/", pages.NewCluster.as_view(), name="create"),
    path("<uuid:uuid>/", pages.ClusterPage.as_view(), name="detail"),
    path("<uuid:uuid>/scale-out/", operations.ScaleOut.as_view(), name="scale-out"),
    path("<uuid:uuid>/scale-in/", operations.ScaleIn.as_view(), name="scale-in"),
    path("<uuid:uuid>/resize/", operations.Resize.as_view(), name="resize"),
    path("<uuid:uuid>/check/", operations.Check.as_view(), name="check"),
    path("<uuid:uuid>/recover/", operations.Recover.as_view(), name="recover"),
    path("<uuid:uuid>/change/", operations.Change.as_view(), name="change"),
    path("<uuid:uuid>/delete/", operations.Delete.as_view(), name="delete"),
    path("<uuid:uuid>/attach/", operations.Attach.as_view(), name="attach"),
    path("attached/<uuid:uuid>/enable/", operations.Enable.as_view(), name="enable"),
    path("attached/<uuid:uuid>/disable/", operations.Disable.as_view(), name="disable"),
    path("attached/<uuid:uuid>/detach/", operations.Detach.as_view(), name="detach"),
    path("nodes/<uuid:uuid>/check/", operations.CheckNode.as_view(), name="check-node"),
    path("nodes/<uuid:uuid>/recover/", operations.RecoverNode.as_view(), name="recover-node"),
    path("nodes/<uuid:uuid>/delete/", operations.DeleteNode.as_view(), name="delete-node"),
]
STACKS = [
    path("", stacks.StackList.as_view(), name="list"),
    path("<uuid:uuid>/", stacks.StackPage.as_view(), name="detail"),
    path("resources/<uuid:uuid>/", stacks.ResourcePlace.as_view(), name="resource"),
    path("new/", stack_operations.NewStack.as_view(), name="create"),
    path("<uuid:uuid>/update/", stack_operations.UpdateStack.as_view(), name="update"),
    path("<uuid:uuid>/delete/", stack_operations.DeleteStack.as_view(), name="delete"),
]
MARKS = [
    path("servers/<uuid:uuid>/mark/", marks.MarkServer.as_view(), name="mark-server"),
    path("servers/<uuid:uuid>/clear/", marks.ClearServer.as_view(), name="clear-server"),
    path("nodes/<uuid:uuid>/mark/", marks.MarkNode.as_view(), name="mark-node"),
    path("nodes/<uuid:uuid>/clear/", marks.ClearNode.as_view(), name="clear-node"),
    path("stacks/<uuid:uuid>/mark/", marks.MarkStack.as_view(), name="mark-stack"),
    path("stacks/<uuid:uuid>/clear/", marks.ClearStack.as_view(), name="clear-stack"),
    path("resources/<uuid:uuid>/mark/", marks.MarkResource.as_view(), name="mark-resource"),
    path("resources/<uuid:uuid>/clear/", marks.ClearResource.as_view(), name="clear-resource"),
]
CLOUD = [
    path("nodes/", infrastructure.ComputeNodeList.as_view(), name="nodes"),
    path("nodes/<uuid:uuid>/", infrastructure.ComputeNodePage.as_view(), name="node"),
    path("nodes/pools/", infrastructure.PoolList.as_view(), name="pools"),
    path("nodes/volumes/", infrastructure.VolumeList.as_view(), name="volumes"),
    path("clusters/nodes/", pages.NodeList.as_view(), name="members"),
    path("clusters/nodes/<uuid:uuid>/", pages.NodePage.as_view(), name="member"),
    path("clusters/profiles/", profiles.ProfileList.as_view(), name="profiles"),
    path("clusters/profiles/<uuid:uuid>/", profiles.ProfilePage.as_view(), name="profile"),
    path("clusters/policies/", policies.PolicyList.as_view(), name="policies"),
    path("clusters/policies/new/", policies.NewPolicy.as_view(), name="new-policy"),
    path("clusters/policies/<uuid:uuid>/", policies.PolicyPage.as_view(), name="policy"),
    path("clusters/policies/<uuid:uuid>/delete/", policies.DeletePolicy.as_view(), name="delete-policy"),
    path("servers/", servers.ServerList.as_view(), name="servers"),
    path("servers/<uuid:uuid>/", servers.ServerPage.as_view(), name="server"),
]
PROJECTS = [
    path("servers/", own_servers.OwnServerList.as_view(), name="servers"),
    path("servers/<uuid:uuid>/", own_servers.OwnServerPage.as_view(), name="server"),
    path("servers/<uuid:uuid>/delete/", own_servers.DeleteServer.as_view(), name="server-delete"),
    path("servers/<uuid:uuid>/rebuild/", own_servers.RebuildServer.as_view(), name="server-rebuild"),
    path("servers/<uuid:uuid>/reset/", own_servers.ResetServer.as_view(), name="server-reset"),
    path("servers/<uuid:uuid>/mark/", own_servers.MarkServer.as_view(), name="server-mark"),
    path("servers/<uuid:uuid>/clear/", own_servers.ClearServer.as_view(), name="server-clear"),
    path("stacks/", own_stacks.OwnStackList.as_view(), name="stacks"),
    path("stacks/new/", own_stacks.NewStack.as_view(), name="stack-create"),
    path("stacks/<uuid:uuid>/", own_stacks.OwnStackPage.as_view(), name="stack"),
    path("stacks/<uuid:uuid>/update/", own_stacks.UpdateStack.as_view(), name="stack-update"),
    path("stacks/<uuid:uuid>/delete/", own_stacks.DeleteStack.as_view(), name="stack-delete"),
    path("stacks/<uuid:uuid>/mark/", own_stacks.MarkStack.as_view(), name="stack-mark"),
    path("stacks/<uuid:uuid>/clear/", own_stacks.ClearStack.as_view(), name="stack-clear"),
    path("stacks/resources/<uuid:uuid>/mark/", own_stacks.MarkResource.as_view(), name="resource-mark"),
    path("stacks/resources/<uuid:uuid>/clear/", own_stacks.ClearResource.as_view(), name="resource-clear"),
    path("clusters/", own_clusters.OwnClusterList.as_view(), name="clusters"),
    path("clusters/new/", own_clusters.NewCluster.as_view(), name="cluster-create"),
    path("clusters/<uuid:uuid>/", own_clusters.OwnClusterPage.as_view(), name="cluster"),
    path("clusters/<uuid:uuid>/scale-out/", own_clusters.ScaleOut.as_view(), name="cluster-scale-out"),
    path("clusters/<uuid:uuid>/scale-in/", own_clusters.ScaleIn.as_view(), name="cluster-scale-in"),
    path("clusters/<uuid:uuid>/resize/", own_clusters.Resize.as_view(), name="cluster-resize"),
    path("clusters/<uuid:uuid>/check/", own_clusters.Check.as_view(), name="cluster-check"),
    path("clusters/<uuid:uuid>/recover/", own_clusters.Recover.as_view(), name="cluster-recover"),
    path("clusters/<uuid:uuid>/delete/", own_clusters.Delete.as_view(), name="cluster-delete"),
]

urlpatterns = [
    path("plans/", include((PLANS, "plans"))),
    path("actions/", include((PRUNING, "pruning"))),
    path("exclusions/", include((EXCLUSIONS, "exclusions"))),
    path("clusters/", include((CLUSTERS, "clusters"))),
    path("stacks/", include((STACKS, "stacks"))),
    path("marks/", include((MARKS, "marks"))),
    path("projects/", include((PROJECTS, "projects"))),
    path("", include((CLOUD, "cluster"))),
]
