"""The paths of the Heat mount."""

from django.urls import re_path

from plans.mounts.orchestration.stacks import (
    NotOffered,
    ResourceItem,
    ResourceList,
    StackItem,
    StackList,
    StackLookup,
    StackTemplate,
)
from plans.mounts.orchestration.views import Versions

STACKS = r"^v1/(?P<project>[^/]+)/stacks"
NAME = r"/(?P<name>[^/]+)"
STACK = rf"{STACKS}{NAME}/(?P<identifier>[^/]+)"

# The unsupported parts of Heat's API below a stack, with or without its id.
NOT_OFFERED = r"(?P<part>actions|environment|events|export|files|outputs|snapshots)"

urlpatterns = [
    re_path(r"^(?:v1/?)?$", Versions.as_view()),
    re_path(rf"{STACKS}(?:/detail)?/?$", StackList.as_view()),
    re_path(rf"{STACKS}{NAME}(?P<rest>/(?:resources|template))?/?$", StackLookup.as_view()),
    re_path(rf"{STACKS}{NAME}(?:/[^/]+)?/{NOT_OFFERED}(?:/.*)?$", NotOffered.as_view()),
    re_path(rf"{STACK}/?$", StackItem.as_view()),
    re_path(rf"{STACK}/template/?$", StackTemplate.as_view()),
    re_path(rf"{STACK}/resources/?$", ResourceList.as_view()),
    re_path(rf"{STACK}/resources/(?P<resource>[^/]+)/?$", ResourceItem.as_view()),
]
