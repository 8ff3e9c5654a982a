"""The language and the time zone of the pages, which the user selects and which are stored in cookies."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import get_language, gettext, override
from django.utils.translation import gettext_lazy as _
from django.views.generic import View

from watcher_site.web.reader import ZONE, chosen_language, chosen_zone
from watcher_site.windows.fields import LongSelect
from watcher_site.windows.wall_clock import zones

YEAR = 365 * 24 * 3600


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(label=_("Language"), required=False)
    zone = forms.ChoiceField(
        label=_("Time zone"), required=False, widget=LongSelect, help_text=_("All times on pages are in this zone.")
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        fields: Any = self.fields
        fields["language"].choices = [("", _("that of the browser")), *settings.LANGUAGES]
        fields["zone"].choices = [("", _("that of the browser")), *((name, name) for name in zones())]


def preferences_form(request: HttpRequest) -> PreferencesForm:
    """Return the form with the current choices of the user."""
    return PreferencesForm(initial={"language": chosen_language(request), "zone": chosen_zone(request)})


class Preferences(View):
    """The preferences form of the account page. It requires no login, because it only changes cookies."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponse:
        form, response = PreferencesForm(request.POST), redirect("account:page")
        if not form.is_valid():
            problems = [
                f"{form.fields[name].label}: {error}" for name, errors in form.errors.items() for error in errors
            ]
            messages.error(request, " ".join(problems))
            return response
        language, zone = form.cleaned_data["language"], form.cleaned_data["zone"]
        for name, value in ((settings.LANGUAGE_COOKIE_NAME, language), (ZONE, zone)):
            if value:
                response.set_cookie(
                    name, value, max_age=YEAR, secure=settings.SESSION_COOKIE_SECURE, httponly=True, samesite="Lax"
                )
            else:
                response.delete_cookie(name)
        with override(language or get_language()):
            messages.success(request, gettext("Preferences saved."))
        return response
