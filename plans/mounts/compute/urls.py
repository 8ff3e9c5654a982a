"""The paths of the compute service, each with and without a trailing slash."""

from django.urls import re_path

from plans.mounts.compute.servers import (
    DetailedServerList,
    InstanceActionList,
    OneInstanceAction,
    OneServer,
    ServerList,
)
from plans.mounts.compute.versions import OneVersion, Versions

SERVER = r"v2\.1/servers/(?P<identifier>[^/]+)"

urlpatterns = [
    re_path(r"^$", Versions.as_view()),
    re_path(r"^v2\.1/?$", OneVersion.as_view()),
    re_path(r"^v2\.1/servers/?$", ServerList.as_view()),
    re_path(r"^v2\.1/servers/detail/?$", DetailedServerList.as_view()),
    re_path(rf"^{SERVER}/?$", OneServer.as_view()),
    re_path(rf"^{SERVER}/os-instance-actions/?$", InstanceActionList.as_view()),
    re_path(rf"^{SERVER}/os-instance-actions/(?P<request_id>[^/]+)/?$", OneInstanceAction.as_view()),
]
