"""The pages of the documentation, which require a login."""

from typing import Any

from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import SuspiciousFileOperation
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.urls import path
from django.utils._os import safe_join
from django.views.generic import TemplateView, View

from watcher_site.documentation.pages import INDEX, find_sections, is_built, load_contents, load_page


class DocumentationView(LoginRequiredMixin, TemplateView):
    """A page of the documentation in the layout of the console."""

    template_name = "documentation/page.html"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        page = load_page(context.get("name", INDEX))
        if is_built() and page is None:
            raise Http404("There is no such page of the documentation.")
        return super().get_context_data(page=page, contents=load_contents(), **context)


class SearchView(LoginRequiredMixin, TemplateView):
    """The sections of the documentation that contain all words of a text."""

    template_name = "documentation/search.html"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        text = self.request.GET.get("q", "").strip()[:200]
        return super().get_context_data(text=text, results=find_sections(text), contents=load_contents(), **context)


class FileView(LoginRequiredMixin, View):
    """A picture of the documentation, or a file that its pages offer for download."""

    folder = ""
    is_download = False

    def get(self, request: HttpRequest, name: str) -> HttpResponse | FileResponse:
        try:
            file = safe_join(settings.DOCUMENTATION_FOLDER / self.folder, name)
            return FileResponse(open(file, "rb"), as_attachment=self.is_download)
        except (OSError, ValueError, SuspiciousFileOperation) as problem:  # ValueError: the name has a null character
            raise Http404("There is no such file of the documentation.") from problem


urlpatterns = [
    path("", DocumentationView.as_view(), name="index"),
    path("search/", SearchView.as_view(), name="search"),
    path("_images/<str:name>", FileView.as_view(folder="_images"), name="image"),
    path("_downloads/<path:name>", FileView.as_view(folder="_downloads", is_download=True), name="download"),
    path("<slug:name>/", DocumentationView.as_view(), name="page"),
]
