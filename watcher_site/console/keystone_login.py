"""Logins at Keystone: the form, the choice of a scope, and the change of a session's scope."""

from time import time
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.generic import View

from watcher_site.accounts.login_limits import LoginsLimited, login_of
from watcher_site.console.pages import Page
from watcher_site.console.resumable_forms import Login, redirect_with_form
from watcher_site.history.logins import KEYSTONE_REFUSED, place_of, record_refused_login
from watcher_site.history.recording import differences, record
from watcher_site.keystone.login import (
    Granted,
    KeystoneUnavailable,
    LoginFailed,
    Scope,
    exchange_token,
    find_scopes,
    request_token,
    revoke_tokens,
)
from watcher_site.keystone.messages import NO_RIGHTS, NO_SCOPE
from watcher_site.keystone.users import KeystoneUser
from watcher_site.messages import Text, translate_message
from watcher_site.refusals import Invalid
from watcher_site.request_context import seal, unseal
from watcher_site.web.keystone_session import begin_session, scope_in_session, tokens_of
from watcher_site.web.middleware import SlidingSession

PENDING = "keystone_login"
# The time for choosing a scope, in seconds.
CHOICE_SECONDS = 600


class KeystoneLoginForm(forms.Form):
    """The form of a login at Keystone. If the user has only one scope, it is chosen."""

    username = forms.CharField(
        label=_("Username"), max_length=255, widget=forms.TextInput({"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    domain = forms.CharField(label=_("Domain"), max_length=64)

    refusal: LoginsLimited | KeystoneUnavailable | None = None
    unscoped: Granted
    scopes: list[Scope]
    granted: Granted | None = None

    def __init__(self, request: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.fields["domain"].initial = settings.KEYSTONE_DOMAIN
        self.request = request

    @method_decorator(sensitive_variables("password"))
    def clean(self) -> Any:
        if self.errors:
            return self.cleaned_data
        name, password, domain = (self.cleaned_data[field] for field in ("username", "password", "domain"))
        attempt = login_of(self.request, f"keystone {domain}/{name}")
        try:
            if attempt:
                attempt.require_allowed()
            try:
                self.unscoped = request_token(name, domain, password)
            except LoginFailed:
                if attempt:
                    attempt.record_failure()
                record_refused_login(str, "", self.request, KEYSTONE_REFUSED.text)
                raise
            if attempt:
                attempt.record_success()
            self.scopes, self.granted = find_scopes_and_token(self.unscoped.token)
        except LoginFailed as refusal:
            raise ValidationError(translate_message(str(refusal))) from refusal
        except LoginsLimited as refusal:
            self.refusal = refusal
            raise ValidationError(translate_message(str(refusal))) from refusal
        except KeystoneUnavailable as refusal:
            self.refusal = refusal
            advice = _("Keystone does not answer. Try again later, or log in with a local account.")
            raise ValidationError(advice) from refusal
        return self.cleaned_data


def find_scopes_and_token(unscoped: str) -> tuple[list[Scope], Granted | None]:
    """Return the scopes of a user and, if there is only one, the token in it.

    Raises:
        LoginFailed: the user has no scope, or no right in the only one. The token is revoked.
        KeystoneUnavailable: Keystone does not respond.
    """
    scopes = find_scopes(unscoped)
    try:
        if not scopes:
            raise LoginFailed(NO_SCOPE.text)
        return scopes, request_scoped_token(unscoped, scopes[0]) if len(scopes) == 1 else None
    except LoginFailed:
        revoke_tokens(unscoped)
        raise


def request_scoped_token(unscoped: str, scope: Scope) -> Granted:
    """Return a token in a scope.

    Raises:
        LoginFailed: no role in the scope grants a right, or Keystone refused the request.
        KeystoneUnavailable: Keystone does not respond.
    """
    granted = exchange_token(unscoped, scope)
    if not granted.user.rights:
        revoke_tokens(granted.token)
        raise LoginFailed(NO_RIGHTS.fill(scope=scope))
    return granted


def begin_recorded_session(request: Any, unscoped: str, granted: Granted) -> None:
    """Begin the session of a Keystone user, and record the login."""
    begin_session(request, unscoped, granted)
    SlidingSession.note(request.session)
    record("user.login", granted.user, details={**place_of(request), "scope": scope_in_session(request)})


class KeystoneLogin(Login):
    """The login with a user name and password of Keystone."""

    template_name = "login_keystone.html"
    form_class = KeystoneLoginForm  # type: ignore[assignment]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if not settings.KEYSTONE_URL:
            raise Http404
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        target, kept = self.get_success_url(), self.request.POST.get("kept", "")
        if form.granted is None:
            return redirect_to_scope_choice(self.request, form.unscoped, target, kept)
        begin_recorded_session(self.request, form.unscoped.token, form.granted)
        return redirect_with_form(self.request, target, kept)


def redirect_to_scope_choice(request: Any, unscoped: Granted, target: str, kept: str = "") -> HttpResponse:
    """Store a login until the user has chosen a scope, and redirect to that page."""
    request.session.cycle_key()
    request.session[PENDING] = {
        "name": unscoped.user.name,
        "token": seal({"unscoped": unscoped.token}),
        "until": min(unscoped.expires_at, time() + CHOICE_SECONDS),
        "target": target,
        "kept": kept,
    }
    return redirect("login-scope")


class ScopeForm(forms.Form):
    """The choice of one of the user's scopes."""

    scope = forms.ChoiceField(label=_("Scope"), help_text=_("Your rights follow from your roles in the scope."))

    def __init__(self, scopes: list[Scope], data: Any = None, initial: str = "") -> None:
        super().__init__(data, initial={"scope": initial})
        self.scopes = {scope.key: scope for scope in scopes}
        names = [scope.name for scope in scopes]
        choices = [
            (scope.key, f"{shown} ({scope.project_id})" if names.count(scope.name) > 1 else shown)
            for scope in scopes
            for shown in [translate_message(str(scope))]
        ]
        self.fields["scope"].choices = choices  # type: ignore[attr-defined]

    @property
    def chosen(self) -> Scope:
        return self.scopes[self.cleaned_data["scope"]]


@method_decorator([sensitive_post_parameters(), never_cache], name="dispatch")
class ScopeChoice(View):
    """The choice of a scope between the login and the session."""

    http_method_names = ["get", "post"]

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.pending = request.session.get(PENDING)
        if request.user.is_authenticated:
            return redirect("home")
        if not settings.KEYSTONE_URL or not self.pending or self.pending["until"] <= time():
            return self.abort(request, _("Log in to choose a scope."))
        try:
            self.token = unseal(self.pending["token"])["unscoped"]
            self.scopes = find_scopes(self.token)
            return super().dispatch(request, *args, **kwargs)
        except (Invalid, LoginFailed):
            return self.abort(request, _("Keystone no longer accepts your login. Log in again."))
        except KeystoneUnavailable as refusal:
            return self.abort(request, translate_message(str(refusal)))

    def abort(self, request: Any, why: Text) -> HttpResponse:
        request.session.pop(PENDING, None)
        messages.error(request, why)
        return redirect("login")

    def get(self, request: Any) -> HttpResponse:
        return self.show(ScopeForm(self.scopes))

    def post(self, request: Any) -> HttpResponse:
        form = ScopeForm(self.scopes, request.POST)
        if form.is_valid():
            try:
                granted = request_scoped_token(self.token, form.chosen)
            except LoginFailed as refusal:
                form.add_error("scope", translate_message(str(refusal)))
            else:
                pending = request.session.pop(PENDING)
                begin_recorded_session(request, self.token, granted)
                return redirect_with_form(request, pending["target"], pending["kept"])
        return self.show(form)

    def show(self, form: ScopeForm) -> HttpResponse:
        heading = _("Choose a scope for %(name)s") % {"name": self.pending["name"]}
        context = {"form": form, "heading": heading, "verb": _("Log in"), "back": reverse("login")}
        return render(self.request, "accounts/form.html", context)


class ScopeChange(Page, View):
    """The change of the scope of a session. Only sessions of users of Keystone have one."""

    permission_required = ()
    history_event = "user.change_scope"
    http_method_names = ["get", "post"]

    def exists_for(self, user: Any) -> bool:
        return isinstance(user, KeystoneUser)

    def has_permission(self) -> bool:
        return self.exists_for(self.request.user)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.has_permission():
            return self.handle_no_permission()
        try:
            self.tokens = tokens_of(request.session)
            self.scopes = find_scopes(self.tokens["unscoped"])
            return super().dispatch(request, *args, **kwargs)
        except (Invalid, LoginFailed, KeystoneUnavailable) as refusal:
            messages.error(request, _("The scope was not changed. %(why)s") % {"why": translate_message(str(refusal))})
            return redirect("account:page")

    def get(self, request: Any) -> HttpResponse:
        user = request.user
        present = Scope(user.scope, user.project_id or "", "").key
        return self.show(ScopeForm(self.scopes, initial=present))

    def post(self, request: Any) -> HttpResponse:
        form = ScopeForm(self.scopes, request.POST)
        if form.is_valid():
            try:
                granted = request_scoped_token(self.tokens["unscoped"], form.chosen)
            except LoginFailed as refusal:
                form.add_error("scope", translate_message(str(refusal)))
            else:
                before = {"scope": scope_in_session(request)}
                begin_session(request, self.tokens["unscoped"], granted)
                SlidingSession.note(request.session)
                after = {"scope": scope_in_session(request)}
                record("user.change_scope", granted.user, details=differences(before, after))
                revoke_tokens(self.tokens["scoped"])
                messages.success(
                    request, _("The scope of your session: %(scope)s.") % {"scope": translate_message(after["scope"])}
                )
                return redirect("account:page")
        return self.show(form)

    def show(self, form: ScopeForm) -> HttpResponse:
        context = {"form": form, "heading": _("Change scope"), "verb": _("Change"), "back": reverse("account:page")}
        return render(self.request, "accounts/form.html", context)
