"""The base of the views that speak as another service does."""

from typing import Any

from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.views import APIView

from watcher_site.api.views import NOTHING_BUT_DATA, refuse_nul


class MountedView(APIView):
    """A view of a mount: its errors have the shape that `watcher_site.api.mounts.faults` has for its path.

    A service with microversions names its own ``versioning_class``, and tells of the version in its answers.
    """

    versioning_class = None
    permission_classes: Any = (IsAuthenticated,)
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        refuse_nul(request)
        super().initial(request, *args, **kwargs)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        final["Content-Security-Policy"] = NOTHING_BUT_DATA
        return final
