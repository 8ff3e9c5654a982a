"""The forms that save the filters of a list under a name, and delete saved filters."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import NoReverseMatch, resolve, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.generic import View

from watcher_site.console.lists.saved_filters import MOST_SAVED, filters_in
from watcher_site.console.pages import ListPage, Page
from watcher_site.models import SavedFilter
from watcher_site.models.saved_filters import NAME_LENGTH, QUERY_LENGTH, owner_of
from watcher_site.templatetags.names import visible


class SavedFilterForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=NAME_LENGTH)
    query = forms.CharField(
        label=gettext_lazy("Filters"),
        max_length=QUERY_LENGTH,
        error_messages={"required": gettext_lazy("Set a filter first.")},
    )


class OwnFilters(Page, View):
    """A change of the user's own saved filters, which requires only a login."""

    permission_required = ()
    http_method_names = ["post"]

    def has_permission(self) -> bool:
        return self.request.user.is_authenticated


class SaveFilters(OwnFilters):
    """Saves the filters of a list, and replaces those with the same name."""

    history_event = "saved_filter.save"

    def post(self, request: HttpRequest) -> HttpResponse:
        page = request.POST.get("page", "")
        names = filters_of(page)
        # The limit applies to the stored text, which percent-encoding may have lengthened.
        query = filters_in(QueryDict(request.POST.get("query", "")), names)
        form = SavedFilterForm({"name": request.POST.get("name", ""), "query": query})
        if not form.is_valid():
            problems = [
                f"{form.fields[name].label}: {error}" for name, found in form.errors.items() for error in found
            ]
            messages.error(request, " ".join(problems))
            return redirect(page)
        self.save(page, form.cleaned_data["name"], query)
        return redirect(f"{reverse(page)}?{query}")

    def save(self, page: str, name: str, query: str) -> None:
        """Save the filters, or add a message with the reason why they cannot be saved."""
        own = SavedFilter.objects.of(self.request.user).filter(page=page)
        if own.exclude(name=name).count() >= MOST_SAVED:
            problem = _("You have %(number)d saved filters of this list. Delete one first.")
            messages.error(self.request, problem % {"number": MOST_SAVED})
        else:
            owner = owner_of(self.request.user)
            SavedFilter.objects.update_or_create(**owner, page=page, name=name, defaults={"query": query})
            messages.success(self.request, _("Filters saved: %(name)s.") % {"name": visible(name)})


class DeleteFilters(OwnFilters):
    history_event = "saved_filter.delete"

    def post(self, request: HttpRequest, pk: int) -> HttpResponse:
        saved = get_object_or_404(SavedFilter.objects.of(request.user), pk=pk)
        page = saved.page
        saved.delete()
        messages.success(request, _("Saved filters deleted: %(name)s.") % {"name": visible(saved.name)})
        return redirect(reverse(page) if is_list(page) else "home")


def is_list(page: str) -> bool:
    """Return whether a URL name belongs to a list."""
    try:
        view: Any = resolve(reverse(page)).func
    except NoReverseMatch:
        return False
    return issubclass(getattr(view, "view_class", View), ListPage)


def filters_of(page: str) -> list[str]:
    """Return the names of the filters of a list.

    Raises:
        Http404: there is no such list.
    """
    if not is_list(page):
        raise Http404
    view: Any = resolve(reverse(page)).func
    return list(view.view_class.filterset_class.base_filters)
