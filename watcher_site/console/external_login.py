"""Logins by OpenID Connect or Keystone's single sign-on, and the logout from them."""

from time import time
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.views import LogoutView, RedirectURLMixin
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.generic import View

from watcher_site.console.keystone_login import begin_recorded_session, find_scopes_and_token, redirect_to_scope_choice
from watcher_site.console.resumable_forms import redirect_with_form
from watcher_site.history.logins import KEYSTONE_REFUSED_BECAUSE, record_refused_login
from watcher_site.keystone.login import KeystoneUnavailable, LoginFailed, read_token, revoke_tokens
from watcher_site.keystone.tokens import TOKEN
from watcher_site.messages import translate_message
from watcher_site.openid.accounts import find_or_make_account
from watcher_site.openid.messages import LOGIN_NOT_BEGUN, NOT_LOGGED_IN, OPENID_REFUSED
from watcher_site.openid.provider import (
    ID_TOKEN,
    LoginRejected,
    LoginRequest,
    ProviderUnavailable,
    find_logout,
    read_claims,
)
from watcher_site.refusals import Refused
from watcher_site.web.keystone_session import tokens_to_revoke

# The session key of a single sign-on that was started in the session.
SIGN_ON = "keystone_sign_on"
LONGEST_TOKEN = 16_384
# How long a login at another site may take, in seconds.
LOGIN_SECONDS = 600
BACKEND = "watcher_site.backends.OneQueryBackend"


def render_redirect(request: HttpRequest, where: str, name: str) -> HttpResponse:
    """Show a page that redirects to another site at once.

    It replaces an HTTP redirect after a form, which browsers refuse: the pages' Content-Security-Policy allows forms
    for no other site, and a provider may redirect to further sites.
    """
    return render(request, "leave.html", {"where": where, "name": name})


def abort_login(request: HttpRequest, why: object) -> HttpResponse:
    messages.error(request, translate_message(str(why)))
    return redirect("login")


@method_decorator(never_cache, name="dispatch")
class LoginStart(RedirectURLMixin, View):
    """The button that starts a login at another site, with the page to show after the login."""

    http_method_names = ["post"]
    next_page = "home"

    def describe_target(self) -> dict[str, Any]:
        """Return the page and form to show after the login, and the time when the attempt expires."""
        kept = self.request.POST.get("kept", "")
        return {"target": self.get_success_url(), "kept": kept, "until": time() + LOGIN_SECONDS}


class SingleSignOnStart(LoginStart):
    """The start of Keystone's single sign-on, which finally posts a token to `SingleSignOnToken`."""

    def post(self, request: Any) -> HttpResponse:
        if not settings.KEYSTONE_SSO:
            raise Http404
        request.session[SIGN_ON] = self.describe_target()
        origin = request.build_absolute_uri(reverse("login-sso-token"))
        where = f"{settings.KEYSTONE_SSO_URL}{settings.KEYSTONE_SSO}?{urlencode({'origin': origin})}"
        return render_redirect(request, where, "Keystone")


@method_decorator([csrf_exempt, sensitive_post_parameters(), never_cache], name="dispatch")
class SingleSignOnToken(View):
    """The page to which Keystone posts a token.

    Browsers send no cookie with this request, as it comes from another site. The response is a form of this site that
    contains the token and is submitted at once, with the session in which the login was started.
    """

    http_method_names = ["post"]

    def post(self, request: Any) -> HttpResponse:
        token = request.POST.get("token", "")
        if not settings.KEYSTONE_SSO:
            raise Http404
        if len(token) > LONGEST_TOKEN or not TOKEN.fullmatch(token):
            return abort_login(request, _("Keystone sent no token. Try again."))
        return render(request, "login_continue.html", {"token": token})


@method_decorator([sensitive_post_parameters(), never_cache], name="dispatch")
class SingleSignOnEnd(View):
    """The end of a single sign-on, in the session that started it."""

    http_method_names = ["post"]

    def post(self, request: Any) -> HttpResponse:
        if not settings.KEYSTONE_SSO:
            raise Http404
        started, token = request.session.pop(SIGN_ON, None), request.POST.get("token", "")
        try:
            if started is None or started["until"] <= time() or not TOKEN.fullmatch(token):
                raise LoginFailed(LOGIN_NOT_BEGUN.text)
            unscoped = read_token(token)
            _, granted = find_scopes_and_token(token)
        except KeystoneUnavailable as refusal:
            return abort_login(request, refusal)
        except LoginFailed as refusal:
            record_refused_login(str, "", request, KEYSTONE_REFUSED_BECAUSE.fill(reason=refusal))
            return abort_login(request, refusal)
        if granted is None:
            return redirect_to_scope_choice(request, unscoped, started["target"], started["kept"])
        begin_recorded_session(request, token, granted)
        return redirect_with_form(request, started["target"], started["kept"])


class OpenIDStart(LoginStart):
    def post(self, request: Any) -> HttpResponse:
        if not settings.OIDC_ISSUER:
            raise Http404
        try:
            where = LoginRequest().get(request)["Location"]
        except ProviderUnavailable as refusal:
            return abort_login(request, refusal)
        # The library appends the state of each login to the session.
        *_, state = request.session["oidc_states"]
        request.session["oidc_states"][state].update(self.describe_target())
        return render_redirect(request, where, settings.OIDC_NAME)


@method_decorator(never_cache, name="dispatch")
class OpenIDCallback(View):
    """The page to which the provider redirects after the login."""

    http_method_names = ["get"]

    def get(self, request: Any) -> HttpResponse:
        if not settings.OIDC_ISSUER:
            raise Http404
        # Each state is used once, even if the login fails.
        states = request.session.pop("oidc_states", {})
        started = states.pop(request.GET.get("state", ""), None)
        request.session["oidc_states"] = states
        try:
            if started is None or started["until"] <= time():
                raise LoginRejected(LOGIN_NOT_BEGUN.text)
            if "error" in request.GET or "code" not in request.GET:
                raise LoginRejected(NOT_LOGGED_IN.fill(provider=settings.OIDC_NAME))
            claims, token = read_claims(request, started)
            user = find_or_make_account(claims)
        except ProviderUnavailable as refusal:
            return abort_login(request, refusal)
        except Refused as refusal:
            record_refused_login(str, "", request, OPENID_REFUSED.fill(reason=refusal))
            return abort_login(request, refusal)
        revoke_tokens(*tokens_to_revoke(request))
        # No data of an earlier user stays in the session, also of a Keystone user, whom Django's login does not
        # recognize.
        request.session.flush()
        login(request, user, backend=BACKEND)
        request.session[ID_TOKEN] = token
        return redirect_with_form(request, started["target"], started["kept"])


class Logout(LogoutView):
    """The logout, which revokes the tokens of a Keystone user, and redirects to the logout of the OpenID provider."""

    def post(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        tokens, where = tokens_to_revoke(request), find_logout(request)
        response = super().post(request, *args, **kwargs)
        revoke_tokens(*tokens)
        return render_redirect(request, where, settings.OIDC_NAME) if where else response
