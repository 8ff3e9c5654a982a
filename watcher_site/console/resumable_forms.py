"""Forms that are submitted after the session has ended are stored, and shown again after the login."""

from abc import abstractmethod
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import resolve, reverse
from django.utils.translation import gettext_lazy as _
from django_htmx.http import HttpResponseClientRefresh

from watcher_site.accounts.login_limits import LoginsBusy, LoginsLimited
from watcher_site.console.pages import OperationView, Page
from watcher_site.messages import translate_message
from watcher_site.refusals import Refused

KEPT = "kept_form"


class ResumableFormPage(Page):
    """A page with a form that survives a login: `resumed_data` returns the fields that were sent without a session.

    Nothing is stored for users who are not logged in: the login page has the fields as hidden inputs.
    """

    def handle_no_permission(self) -> Any:
        request: Any = self.request
        if request.method != "POST" or request.user.is_authenticated or getattr(request, "htmx", False):
            return super().handle_no_permission()
        context = {"form": AuthenticationForm(request), "next": request.path, "kept": serialize_form(request)}
        return render(request, "login.html", {**context, "ways": other_login_methods(request)})

    def resumed_data(self) -> QueryDict | None:
        """Return the fields that were stored for this page, and delete them."""
        kept = self.request.session.get(KEPT)
        if not kept or kept["path"] != self.request.path:
            return None
        del self.request.session[KEPT]
        return QueryDict(kept["fields"])


class FormOperationView(ResumableFormPage, OperationView):
    """An operation with a form, which is shown again with the reason of a refusal.

    The form has a method ``add_refusal``, which adds this reason to the field that it concerns.
    """

    submitted: Any
    """The form that was sent, for `perform`."""

    @abstractmethod
    def form(self, record: Any, data: QueryDict | None = None) -> Any:
        """Return the form for a record, with the data that were sent."""

    def render_confirmation(self, record: Any) -> HttpResponse:
        return self.show(record, self.form(record, self.resumed_data()))

    def show(self, record: Any, form: Any) -> HttpResponse:
        context = {"record": record, "view": self, "form": form, "back": self.redirect_url(record, False)}
        return render(self.request, "operation.html", context)

    def post(self, request: HttpRequest, **_path: Any) -> HttpResponse:
        record = self.get_object()
        self.submitted = form = self.form(record, request.POST)
        if not form.is_valid():
            return self.show(record, form)
        try:
            messages.success(request, self.perform(record))
        except Refused as refusal:
            form.add_refusal(translate_message(str(refusal)))
            self.record_problem(refusal, record)
            return self.show(record, form)
        return redirect(self.redirect_url(record, True))


def other_login_methods(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the login methods other than that of the page, with their URLs and button labels."""
    methods = [{"where": reverse("login"), "label": _("Log in with a local account")}]
    if settings.KEYSTONE_URL:
        methods.append({"where": reverse("login-keystone"), "label": _("Log in with Keystone")})
    if settings.KEYSTONE_SSO:
        methods.append({"where": reverse("login-sso"), "label": _("Log in with Keystone single sign-on")})
    if settings.OIDC_ISSUER:
        methods.append(
            {"where": reverse("login-openid"), "label": _("Log in with %(name)s") % {"name": settings.OIDC_NAME}}
        )
    present = request.path if request.path in {method["where"] for method in methods} else reverse("login")
    return [method for method in methods if method["where"] != present]


def redirect_with_form(request: Any, target: str, fields: str) -> HttpResponse:
    """Redirect to the page for which the user logged in, with the fields of a form that was not executed."""
    if fields:
        request.session[KEPT] = {"path": target, "fields": fields}
    return redirect(target)


class LoginForm(AuthenticationForm):
    """Django's login form, which shows why a password was not verified."""

    refusal: LoginsLimited | LoginsBusy | None = None

    def clean(self) -> Any:
        try:
            return super().clean()
        except (LoginsLimited, LoginsBusy) as refusal:
            self.refusal = refusal
            raise ValidationError(translate_message(str(refusal))) from refusal


class Login(LoginView):
    """The login with a local account. The pages of other login methods link here without a name."""

    template_name = "login.html"
    redirect_authenticated_user = True
    form_class = LoginForm

    def get_form_kwargs(self) -> dict[str, Any]:
        options = super().get_form_kwargs()
        return options if "username" in self.request.POST else {**options, "data": None, "files": None}

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        if form.refusal:
            response.status_code = form.refusal.status
            response["Retry-After"] = str(form.refusal.retry_after)
        return response

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        return redirect_with_form(self.request, response.headers["Location"], self.request.POST.get("kept", ""))

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        kept, ways = self.request.POST.get("kept", ""), other_login_methods(self.request)
        return super().get_context_data(kept=kept, ways=ways, **context)


def handle_expired_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Respond to a form of an earlier session: show it again with its values, if it came from a page of this site."""
    view = getattr(resolve(request.path).func, "view_class", object)
    is_own = request.headers.get("Origin") == f"{request.scheme}://{request.get_host()}"
    if issubclass(view, ResumableFormPage) and is_own and request.user.is_authenticated:
        request.session[KEPT] = {"path": request.path, "fields": serialize_form(request)}
        return HttpResponseClientRefresh() if getattr(request, "htmx", False) else redirect(request.path)
    return render(request, "403_csrf.html", status=403)


def serialize_form(request: HttpRequest) -> str:
    """Return the form fields as text, without the CSRF token of the session that ended."""
    fields = request.POST.copy()
    fields.pop("csrfmiddlewaretoken", None)
    return fields.urlencode()
