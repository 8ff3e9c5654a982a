"""The console's pages of accounts, for user administrators."""

from collections.abc import Callable
from typing import Any, ClassVar

import django_filters
import django_tables2 as tables
from django import forms
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.generic import View
from knox.models import AuthToken

from watcher_site.accounts.projects import PROJECT_LENGTH, add_member, remove_member
from watcher_site.accounts.tokens import valid_tokens
from watcher_site.accounts.users import (
    MANAGE,
    change_password,
    create_user,
    generate_password,
    require_authority,
    set_active,
    set_groups,
)
from watcher_site.console.account import TokenOperationView, TokenTable, show_secret_once
from watcher_site.console.columns import TABLE_ATTRIBUTES, TimeColumn
from watcher_site.console.pages import ListPage, OperationView, Page, RecordPage, perform_with_message
from watcher_site.messages import Text, translate_message
from watcher_site.refusals import Invalid, Refused

GENERATED = "generated password"


class UserTable(tables.Table):
    username = tables.Column(linkify=("users:detail", {"pk": tables.A("pk")}), verbose_name=_("name"))
    groups = tables.Column(accessor="pk", orderable=False)
    projects = tables.Column(accessor="pk", orderable=False)
    is_active = tables.Column(verbose_name=_("state"))
    last_login = TimeColumn(accessor="last_login", verbose_name=_("last login"), default=_("never"))

    class Meta:
        model = User
        fields = ("username", "groups", "projects", "is_active", "last_login")
        attrs = TABLE_ATTRIBUTES

    def render_groups(self, record: User) -> str:
        return ", ".join(sorted(group.name for group in record.groups.all())) or gettext("none")

    def render_projects(self, record: Any) -> str:
        return ", ".join(sorted(member.project_id for member in record.project_memberships.all())) or gettext("none")

    def render_is_active(self, value: bool) -> str:
        return gettext("enabled") if value else gettext("disabled")


class UserFilters(django_filters.FilterSet):
    name = django_filters.CharFilter(field_name="username", label=_("Name"), lookup_expr="icontains")
    group = django_filters.ModelChoiceFilter(
        field_name="groups", label=_("Group"), queryset=Group.objects.order_by("name"), empty_label=_("any")
    )

    class Meta:
        model = User
        fields: list[str] = []


class UserList(ListPage):
    model = User
    permission_required = MANAGE
    table_class = UserTable
    filterset_class = UserFilters
    template_name = "accounts/user_list.html"
    heading = _("Users")
    help_page = "operating#people"

    def get_queryset(self) -> QuerySet[User]:
        return User.objects.order_by("username").prefetch_related("groups", "project_memberships")


class GroupsField(forms.ModelMultipleChoiceField):
    def __init__(self) -> None:
        choices = Group.objects.order_by("name")
        super().__init__(choices, required=False, label=_("Member of"), widget=forms.CheckboxSelectMultiple)


class GroupsForm(forms.Form):
    groups = GroupsField()


class ProjectForm(forms.Form):
    project = forms.CharField(max_length=PROJECT_LENGTH, strip=False, label=_("Add a project"))


class UserPage(RecordPage):
    """The page of one account, with its groups, projects and tokens."""

    model = User
    permission_required = MANAGE
    template_name = "accounts/user_detail.html"
    context_object_name = "account"

    def get_queryset(self) -> QuerySet[User]:
        return User.objects.select_related("external_identity")

    def may_administer(self) -> bool:
        try:
            require_authority(self.request.user, self.object)
        except Refused:
            return False
        return True

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        account, may_administer = self.object, self.may_administer()
        groups = list(account.groups.order_by("name"))
        memberships = account.project_memberships.order_by("project_id").values_list("project_id", flat=True)
        tokens = valid_tokens().filter(user=account).order_by("created")
        return super().get_context_data(
            groups_form=GroupsForm(initial={"groups": groups}),
            project_form=ProjectForm(),
            projects=list(memberships),
            identity=getattr(account, "external_identity", None),
            groups=[group.name for group in groups],
            may_administer=may_administer,
            table=TokenTable(tokens, "users:revoke-token", account.pk, is_revocable=may_administer),
            **context,
        )


class UserForm(forms.Form):
    """The form of a new account, whose password is generated."""

    name = forms.CharField(label=_("Name"), max_length=150, strip=False)
    # No group is preselected, because the first one has all rights.
    group = forms.ModelChoiceField(
        Group.objects.order_by("name"), label=_("Group"), to_field_name="name", empty_label=_("Choose a group")
    )
    project = forms.CharField(
        label=_("Project"),
        max_length=PROJECT_LENGTH,
        required=False,
        strip=False,
        help_text=_("The project that the user is a member of."),
    )

    def add_refusal(self, refusal: Refused) -> None:
        """Add the reason of a refusal to the field that it concerns, if any."""
        message = translate_message(str(refusal))
        name, _, reason = message.partition(": ")
        is_field = name in self.fields
        self.add_error(name if is_field else None, capfirst(reason) if is_field else message)


class NewUser(Page, View):
    history_event = "user.create"
    permission_required = MANAGE
    http_method_names = ["get", "post"]

    def get(self, request: Any) -> HttpResponse:
        return self.show(UserForm())

    def post(self, request: Any) -> HttpResponse:
        form = UserForm(request.POST)
        if form.is_valid():
            name, group, project = (form.cleaned_data[field] for field in ("name", "group", "project"))
            password = generate_password()
            try:
                require_authority(request.user, groups=[group])
                made = create_user(name, password, GENERATED, group.name, [project] if project else [])
            except Refused as refusal:
                self.record_problem(refusal, name)
                form.add_refusal(refusal)
            else:
                about = _("The password of %(name)s, who can change it on the page Account.") % {"name": name}
                return show_secret_once(
                    request, _("New user"), password, about, reverse("users:detail", args=[made.pk])
                )
        return self.show(form)

    def show(self, form: UserForm) -> HttpResponse:
        context = {"form": form, "heading": _("New user"), "verb": _("Create"), "back": reverse("users:list")}
        return render(self.request, "accounts/form.html", context)


class UserOperationView(OperationView):
    """A button on the page of an account."""

    model = User
    permission_required = MANAGE

    def get_queryset(self) -> QuerySet[User]:
        return User.objects.all()

    def redirect_url(self, record: User, done: bool) -> str:
        return reverse("users:detail", args=[record.pk])


class DisableUser(UserOperationView):
    history_event = "user.disable"
    verb = _("disable the account")
    question = _("Disable this account?")
    consequence = _("The password and the sessions of the account are refused. Its tokens are revoked.")

    def perform(self, record: User) -> str:
        require_authority(self.request.user, record)
        set_active(record.username, False)
        return _("%(name)s is disabled.") % {"name": record.username}


class EnableUser(UserOperationView):
    history_event = "user.enable"
    verb = _("enable the account")

    def perform(self, record: User) -> str:
        require_authority(self.request.user, record)
        set_active(record.username, True)
        return _("%(name)s is enabled.") % {"name": record.username}


class ResetPassword(UserOperationView):
    history_event = "user.change_password"
    verb = _("reset the password")
    question = _("Reset the password?")
    consequence = _("A new password is shown once. The sessions of the account end, and its tokens are revoked.")

    def perform(self, record: User) -> str:
        require_authority(self.request.user, record)
        self.password = generate_password()
        change_password(record.username, self.password, GENERATED)
        return _("The password of %(name)s was reset.") % {"name": record.username}

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        record = self.get_object()
        back = self.redirect_url(record, True)
        if not perform_with_message(self, record):
            return redirect(back)
        about = _("The new password of %(name)s.") % {"name": record.username}
        return show_secret_once(request, _("New password"), self.password, about, back)


class SetGroups(UserOperationView):
    """The form of the groups of an account."""

    history_event = "user.set_groups"
    http_method_names = ["post"]
    verb = _("change the groups")

    def perform(self, record: User) -> str:
        form = GroupsForm(self.request.POST)
        if not form.is_valid():
            raise Invalid("groups: choose groups of the list.")
        chosen = list(form.cleaned_data["groups"])
        require_authority(self.request.user, record, chosen)
        set_groups(record.username, [group.name for group in chosen])
        return _("The groups of %(name)s were changed.") % {"name": record.username}


class MembershipView(UserOperationView):
    """The form that changes the membership of an account in a project."""

    http_method_names = ["post"]
    change: ClassVar[Callable[[str, str], Any]]
    result: ClassVar[Text]

    def perform(self, record: User) -> str:
        project = self.request.POST.get("project", "")
        require_authority(self.request.user, record)
        type(self).change(record.username, project)
        return self.result % {"name": record.username, "project": project}


class AddProject(MembershipView):
    history_event, verb = "project.add_member", _("add a project")
    change, result = add_member, _("%(name)s is a member of %(project)s.")


class RemoveProject(MembershipView):
    history_event, verb = "project.remove_member", _("remove a project")
    change, result = remove_member, _("%(name)s is not a member of %(project)s.")


class RevokeTokenOfUser(TokenOperationView):
    permission_required = MANAGE

    def tokens(self) -> QuerySet[AuthToken]:
        return valid_tokens().filter(user=self.kwargs["pk"])

    def perform(self, record: AuthToken) -> str:
        require_authority(self.request.user, record.user)
        return super().perform(record)

    def redirect_url(self, record: AuthToken, done: bool) -> str:
        return reverse("users:detail", args=[self.kwargs["pk"]])
