"""The URLs of the console. All pages are below one prefix, because URLs without it belong to the API."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import include, is_valid_path, path, re_path

from audits.console.comparison import AuditComparison, PlanComparison
from audits.console.overview import Overview
from audits.console.search import Search
from audits.console.trends import Trends
from watcher_site.console import (
    account,
    external_login,
    history,
    keystone_login,
    preferences,
    subscriptions,
    undelivered,
    users,
)
from watcher_site.console.lists.views import DeleteFilters, SaveFilters
from watcher_site.console.resumable_forms import Login
from watcher_site.history.reading import FORMATS


def add_slash(request: HttpRequest, path: str) -> HttpResponse:
    """Redirect a URL without its final slash to the page.

    APPEND_SLASH is not used, because URLs of the API have no final slash.
    """
    if request.method not in ("GET", "HEAD") or not is_valid_path(f"{request.path_info}/"):
        raise Http404
    return redirect(request.get_full_path(force_append_slash=True))


history_patterns = [
    path("", history.HistoryList.as_view(), name="list"),
    re_path(rf"^export\.(?P<kind>{'|'.join(FORMATS)})$", history.Export.as_view(), name="export"),
]
notification_patterns = [
    path("", subscriptions.SubscriptionList.as_view(), name="list"),
    path("new/", subscriptions.NewSubscription.as_view(), name="new"),
    path("undelivered/", undelivered.UndeliveredList.as_view(), name="undelivered"),
    path("undelivered/resend/", undelivered.ResendAll.as_view(), name="resend-all"),
    path("undelivered/<uuid:uuid>/resend/", undelivered.Resend.as_view(), name="resend"),
    path("undelivered/<uuid:uuid>/delete/", undelivered.DeleteUndelivered.as_view(), name="delete-undelivered"),
    path("<uuid:uuid>/", subscriptions.SubscriptionPage.as_view(), name="detail"),
    path("<uuid:uuid>/change/", subscriptions.ChangeSubscription.as_view(), name="change"),
    path("<uuid:uuid>/test/", subscriptions.SendTest.as_view(), name="test"),
    path("<uuid:uuid>/secret/", subscriptions.RenewSecret.as_view(), name="secret"),
    path("<uuid:uuid>/delete/", subscriptions.DeleteSubscription.as_view(), name="delete"),
]
account_patterns = [
    path("", account.AccountPage.as_view(), name="page"),
    path("preferences/", preferences.Preferences.as_view(), name="preferences"),
    path("secret/", account.SecretPage.as_view(), name="secret"),
    path("password/", account.OwnPassword.as_view(), name="password"),
    path("scope/", keystone_login.ScopeChange.as_view(), name="scope"),
    path("tokens/new/", account.NewToken.as_view(), name="new-token"),
    path("tokens/<slug:key>/revoke/", account.RevokeToken.as_view(), name="revoke-token"),
]
user_patterns = [
    path("", users.UserList.as_view(), name="list"),
    path("new/", users.NewUser.as_view(), name="new"),
    path("<int:pk>/", users.UserPage.as_view(), name="detail"),
    path("<int:pk>/enable/", users.EnableUser.as_view(), name="enable"),
    path("<int:pk>/disable/", users.DisableUser.as_view(), name="disable"),
    path("<int:pk>/password/", users.ResetPassword.as_view(), name="password"),
    path("<int:pk>/groups/", users.SetGroups.as_view(), name="groups"),
    path("<int:pk>/projects/add/", users.AddProject.as_view(), name="add-project"),
    path("<int:pk>/projects/remove/", users.RemoveProject.as_view(), name="remove-project"),
    path("<int:pk>/tokens/<slug:key>/revoke/", users.RevokeTokenOfUser.as_view(), name="revoke-token"),
]

urlpatterns = [
    path("", Overview.as_view(), name="home"),
    path("search/", Search.as_view(), name="search"),
    path("trends/", Trends.as_view(), name="trends"),
    path("plans/compare/", PlanComparison.as_view(), name="compare-plans"),
    path("audits/compare/", AuditComparison.as_view(), name="compare-audits"),
    path("login/", Login.as_view(), name="login"),
    path("login/keystone/", keystone_login.KeystoneLogin.as_view(), name="login-keystone"),
    path("login/keystone/scope/", keystone_login.ScopeChoice.as_view(), name="login-scope"),
    path("login/sso/", external_login.SingleSignOnStart.as_view(), name="login-sso"),
    path("login/sso/token/", external_login.SingleSignOnToken.as_view(), name="login-sso-token"),
    path("login/sso/end/", external_login.SingleSignOnEnd.as_view(), name="login-sso-end"),
    path("login/openid/", external_login.OpenIDStart.as_view(), name="login-openid"),
    path("login/openid/callback/", external_login.OpenIDCallback.as_view(), name="login-openid-callback"),
    path("logout/", external_login.Logout.as_view(), name="logout"),
    path("account/", include((account_patterns, "account"))),
    path("filters/save/", SaveFilters.as_view(), name="save-filters"),
    path("filters/<int:pk>/delete/", DeleteFilters.as_view(), name="delete-filters"),
    path("users/", include((user_patterns, "users"))),
    path("audits/", include("audits.urls")),
    path("history/", include((history_patterns, "history"))),
    path("actions/", include("actions.urls")),
    path("notifications/", include((notification_patterns, "notifications"))),
    path("", include("plans.urls")),
    re_path(r"^(?P<path>.*[^/])$", add_slash),
]
