"""The pages of a user's own account, tokens and password."""

from abc import abstractmethod
from datetime import UTC, datetime
from typing import Any

import django_tables2 as tables
from django import forms
from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.generic import View
from knox.models import AuthToken
from knox.settings import knox_settings

from watcher_site.accounts.login_limits import LoginsBusy, LoginsLimited
from watcher_site.accounts.tokens import (
    LONGEST_HOURS,
    NAME_LENGTH,
    describe_scope,
    details_of,
    end_token,
    groups_for,
    make_token,
    valid_tokens,
)
from watcher_site.accounts.users import store_password
from watcher_site.authorization.enforcement import decide
from watcher_site.console.columns import TABLE_ATTRIBUTES, DueColumn, TimeColumn
from watcher_site.console.pages import OperationView, Page
from watcher_site.console.preferences import preferences_form
from watcher_site.keystone.users import KeystoneUser
from watcher_site.messages import Text, translate_message
from watcher_site.models import ExternalIdentity
from watcher_site.refusals import Invalid, Refused
from watcher_site.request_context import seal, unseal
from watcher_site.templatetags.console import when
from watcher_site.web.keystone_session import scope_in_session
from watcher_site.web.middleware import KEYSTONE_KEY as KEY

# The key of the session for a secret that is shown once.
SHOWN_ONCE = "shown_once"


class OwnPage(Page):
    """A page of the account of the user who is logged in."""

    permission_required = ()

    def has_permission(self) -> bool:
        return self.request.user.is_authenticated


class LocalPage(OwnPage):
    """A page for users with a local account. Keystone users have neither tokens nor a password here."""

    def exists_for(self, user: Any) -> bool:
        return not isinstance(user, KeystoneUser)

    def has_permission(self) -> bool:
        user = self.request.user
        return super().has_permission() and self.exists_for(user) and may_manage_own_tokens(self.policy, user)


def may_manage_own_tokens(policy: str, user: Any) -> bool:
    """Return whether the rule of a policy, if there is one, allows an operation on the user's own tokens."""
    return decide(policy, user, {"user_id": user.get_username()}) is not False


class TokenTable(tables.Table):
    """The valid tokens of one account, each with a button that revokes it.

    Args:
        page: the name of the page that revokes a token.
        where: the arguments of its URL before the key of the token.
        is_revocable: whether the user may revoke the tokens.
    """

    name = tables.Column(accessor="token_key", orderable=False)
    scope = tables.Column(accessor="token_key", orderable=False)
    created = TimeColumn(accessor="created", orderable=False)
    last_used = tables.Column(accessor="token_key", verbose_name=_("last used"), orderable=False)
    expiry = DueColumn(accessor="expiry", verbose_name=_("expires"), default=_("never"), orderable=False)
    revoke = tables.Column(accessor="token_key", verbose_name=_("operations"), orderable=False)

    class Meta:
        attrs = TABLE_ATTRIBUTES

    def __init__(self, tokens: Any, page: str, *where: Any, is_revocable: bool = True) -> None:
        super().__init__(list(tokens), exclude=() if is_revocable else ("revoke",))
        self.revocation = page, where

    def render_name(self, value: str, record: AuthToken) -> SafeString:
        name = details_of(record).name
        return format_html('{} <span class="uuid secondary">{}…</span>', name, value)

    def render_scope(self, record: AuthToken) -> str:
        return translate_message(describe_scope(record))

    def render_last_used(self, record: AuthToken) -> SafeString | str:
        moment = details_of(record).last_used_at
        return when(moment) if moment else gettext("never")

    def render_revoke(self, record: AuthToken) -> str:
        page, before = self.revocation
        where = reverse(page, args=[*before, record.token_key])
        return render_to_string("_ask.html", {"where": where, "label": _("Revoke…"), "look": "sm btn-outline-danger"})


class AccountPage(OwnPage, View):
    """The page of the user's own account, with its permissions and tokens."""

    http_method_names = ["get"]

    def get(self, request: Any) -> HttpResponse:
        if isinstance(request.user, KeystoneUser):
            stored, user = request.session[KEY], request.user
            context = {
                "domain": stored["domain"],
                "scope": translate_message(scope_in_session(request)),
                "roles": sorted(user.roles),
                "rights": sorted(user.rights),
                "expiry": datetime.fromtimestamp(stored["expires_at"], UTC),
                "preferences": preferences_form(request),
            }
            return render(request, "accounts/keystone_account.html", context)
        tokens = valid_tokens().filter(user=request.user).order_by("created")
        is_revocable = may_manage_own_tokens(RevokeToken.policy, request.user)
        table = TokenTable(tokens, "account:revoke-token", is_revocable=is_revocable)
        groups = list(request.user.groups.order_by("name").values_list("name", flat=True))
        is_local = request.user.has_usable_password()
        identity = None if is_local else ExternalIdentity.objects.filter(user=request.user).first()
        may_create = may_manage_own_tokens(NewToken.policy, request.user)
        context = {"table": table, "groups": groups, "identity": identity, "may_create": may_create}
        context["preferences"] = preferences_form(request)
        return render(request, "accounts/account.html", context)


class TokenForm(forms.Form):
    """The form of a new token of an account."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH, help_text=_("For example: night job."))
    group = forms.ChoiceField(label=_("Rights"), required=False)
    read_only = forms.BooleanField(label=_("Read only"), required=False)
    hours = forms.FloatField(
        label=_("Validity in hours"), min_value=0.01, max_value=LONGEST_HOURS, help_text=_("A year has 8,760 hours.")
    )

    def __init__(self, user: User, data: Any = None) -> None:
        hours = knox_settings.TOKEN_TTL.total_seconds() / 3600
        super().__init__(data, initial={"hours": f"{hours:g}"})
        names = groups_for(user).order_by("name").values_list("name", flat=True)
        of_groups = ((name, _("rights of group %(name)s") % {"name": name}) for name in names)
        choices = [("", _("all rights of the account")), *of_groups]
        self.fields["group"].choices = choices  # type: ignore[attr-defined]

    def add_refusal(self, refusal: Refused) -> None:
        """Add the reason of a refusal to the field that it concerns, if any."""
        message = translate_message(str(refusal))
        name, _, reason = message.partition(": ")
        is_field = name in self.fields
        self.add_error(name if is_field else None, capfirst(reason) if is_field else message)


class NewToken(LocalPage, View):
    history_event, policy = "token.create", "token:create"
    http_method_names = ["get", "post"]

    def get(self, request: Any) -> HttpResponse:
        return self.show(TokenForm(request.user))

    def post(self, request: Any) -> HttpResponse:
        form = TokenForm(request.user, request.POST)
        if form.is_valid():
            try:
                token = make_token(request.user, **form.cleaned_data)[1]
            except Refused as refusal:
                self.record_problem(refusal)
                form.add_refusal(refusal)
            else:
                about = gettext("Send this token in the header X-Auth-Token.")
                return show_secret_once(request, _("New token"), token, about, reverse("account:page"))
        return self.show(form)

    def show(self, form: TokenForm) -> HttpResponse:
        context = {"form": form, "heading": _("New token"), "verb": _("Create"), "back": reverse("account:page")}
        return render(self.request, "accounts/form.html", context)


class TokenOperationView(OperationView):
    """The button that revokes a token."""

    history_event = "token.revoke"
    verb = _("revoke the token")
    question = _("Revoke this token?")
    consequence = _("Requests with this token are refused from now on.")

    @abstractmethod
    def tokens(self) -> QuerySet[AuthToken]:
        """Return the tokens that the user may revoke on this page."""

    def get_object(self, queryset: Any = None) -> AuthToken:
        found: AuthToken | None = self.tokens().filter(token_key=self.kwargs["key"]).first()
        if found is None:
            raise Http404
        return found

    def name_of(self, record: AuthToken) -> str:
        return f"{record.token_key}…"

    def perform(self, record: AuthToken) -> str:
        end_token(record)
        return _("The token %(token)s… was revoked.") % {"token": record.token_key}


class RevokeToken(LocalPage, TokenOperationView):
    policy = "token:delete"

    def tokens(self) -> QuerySet[AuthToken]:
        return valid_tokens().filter(user=self.request.user)

    def redirect_url(self, record: AuthToken, done: bool) -> str:
        return reverse("account:page")


class OwnPasswordForm(PasswordChangeForm):
    """Django's form, with the limits on failed logins for the verification of the old password."""

    refusal: LoginsLimited | LoginsBusy | None = None

    def __init__(self, request: Any, data: Any = None) -> None:
        super().__init__(request.user, data)
        self.request = request

    def clean_old_password(self) -> str:
        password: str = self.cleaned_data["old_password"]
        try:
            found = authenticate(self.request, username=self.user.get_username(), password=password)
        except (LoginsLimited, LoginsBusy) as refusal:
            self.refusal = refusal
            raise forms.ValidationError(translate_message(str(refusal))) from refusal
        if found is None:
            raise forms.ValidationError(self.error_messages["password_incorrect"], "password_incorrect")
        return password

    def clean_new_password1(self) -> str:
        password: str = self.cleaned_data["new_password1"]
        if password == self.cleaned_data.get("old_password"):
            raise forms.ValidationError(_("The new password must differ from the old one."))
        return password

    def save(self, commit: bool = True) -> Any:
        store_password(self.user, self.cleaned_data["new_password1"])
        return self.user


class OwnPassword(LocalPage, View):
    """The form that changes the user's own password, which ends all tokens and all other sessions."""

    history_event = "user.change_password"
    http_method_names = ["get", "post"]

    def exists_for(self, user: Any) -> bool:
        return super().exists_for(user) and bool(user.has_usable_password())

    def get(self, request: Any) -> HttpResponse:
        return self.show(OwnPasswordForm(request))

    def post(self, request: Any) -> HttpResponse:
        form = OwnPasswordForm(request, request.POST)
        if not form.is_valid():
            return self.show(form)
        update_session_auth_hash(request, form.save())
        messages.success(request, _("Your password was changed. Your tokens and your other sessions have ended."))
        return redirect("account:page")

    def show(self, form: OwnPasswordForm) -> HttpResponse:
        context = {"form": form, "heading": _("Change password"), "verb": _("Change"), "back": reverse("account:page")}
        context["note"] = _("All your tokens are revoked, and your other sessions end.")
        response = render(self.request, "accounts/form.html", context)
        if form.refusal:
            response.status_code = form.refusal.status
            response["Retry-After"] = str(form.refusal.retry_after)
        return response


def show_secret_once(request: Any, heading: Text, secret: str, about: Text, back: str) -> HttpResponse:
    """Redirect to a page that shows a token or password once. Reloading that page does not repeat the request."""
    shown = {"heading": str(heading), "secret": secret, "about": str(about), "back": back}
    request.session[SHOWN_ONCE] = seal(shown)
    return redirect("account:secret")


class SecretPage(OwnPage, View):
    """The page that shows a new secret once. Neither a reload nor the browser's cache shows it again."""

    http_method_names = ["get"]

    def get(self, request: Any) -> HttpResponse:
        sealed = request.session.pop(SHOWN_ONCE, None)
        try:
            context = dict(unseal(sealed)) if sealed else {}
        except Invalid:
            context = {}
        response = render(request, "accounts/secret.html", {"back": reverse("account:page"), **context})
        response["Cache-Control"] = "no-store"
        return response
