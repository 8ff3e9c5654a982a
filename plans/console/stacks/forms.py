"""The forms of new and changed stacks."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from cluster.drivers.quotas import demand_of_template
from cluster.models import ComputeNode, Flavor, Stack
from cluster.models.stacks import MAX_TIMEOUT, NAME_LENGTH
from cluster.stacks.templates.schemas import MAX_RESOURCES
from cluster.stacks.templates.templates import Template, checked_template, format_template
from plans.console.clusters.forms import OperationForm
from watcher_site.accounts.projects import PROJECT_LENGTH
from watcher_site.console.schema_fields import Row, RowsField
from watcher_site.templatetags.console import gigabytes

EMPTY_ROWS = 4
ROWS = 20
EXAMPLE = """\
resources:
  database:
    type: server
    properties: {flavor: large}
  web:
    type: scaling_group
    depends_on: database
    properties:
      size: 3
      member: {type: server, properties: {flavor: small}}
"""


def name_field() -> forms.CharField:
    return forms.CharField(
        label=_("Name"),
        max_length=NAME_LENGTH,
        help_text=_("Letters, digits, _, - and .; must begin with a letter."),
    )


def project_field() -> forms.CharField:
    return forms.CharField(
        max_length=PROJECT_LENGTH,
        required=False,
        label=_("Project"),
        help_text=_("The project that owns the stack."),
    )


def minutes_field() -> forms.IntegerField:
    return forms.IntegerField(
        label=_("Timeout (minutes)"),
        min_value=1,
        max_value=MAX_TIMEOUT,
        required=False,
        help_text=_("For operations on the stack, not counting pauses. Leave empty for the default of the site."),
    )


class ResourcesForm(OperationForm):
    """The servers and scaling groups of a new stack as rows, from which its template is made."""

    name = name_field()
    project_id = project_field()
    timeout_mins = minutes_field()

    field_order = ["name", "resources", "project_id", "timeout_mins", "plan_only"]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["resources"] = field = RowsField(
            resource_columns(),
            label=_("Resources"),
            help_text=_(
                "A resource is a server, or, with a number of members, a scaling group of servers."
                " Enter the resources that it is created after with commas between their names."
            ),
        )
        field.widget.spare = EMPTY_ROWS
        self.order_fields(self.field_order)

    def clean_resources(self) -> list[Row]:
        rows: list[Row] = self.cleaned_data["resources"]
        names = [row["name"] for row in rows]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValidationError(_("Two resources have the name %(name)s."), params={"name": repeated[0]})
        return rows

    @property
    def template(self) -> dict[str, Any]:
        return {"resources": {row["name"]: resource_of(row) for row in self.cleaned_data["resources"]}}

    @property
    def text(self) -> str:
        """The template as YAML. Raises: `Refused`."""
        return format_template(checked_template(self.template))

    @property
    def inputs(self) -> dict[str, Any]:
        given = {name: value for name, value in super().inputs.items() if name != "resources"}
        return {**given, "template": self.template}

    def describe_template(self) -> str:
        """Return a description of the template. Raises: `Refused`."""
        return describe_template(checked_template(self.template))

    def add_refusal(self, refusal: str) -> None:
        """Add a refusal to its field; a refusal of the template to the rows."""
        name, _separator, text = refusal.partition(": ")
        if name == "template":
            self.add_error("resources", text.removeprefix("resources."))
        else:
            super().add_refusal(refusal)


def resource_columns() -> dict[str, forms.Field]:
    flavors = Flavor.objects.present().order_by("name").values_list("name", flat=True)
    zones = ComputeNode.objects.present().order_by("zone").values_list("zone", flat=True).distinct()
    return {
        "name": forms.CharField(label=_("Name"), max_length=NAME_LENGTH),
        "flavor": forms.ChoiceField(label=_("Flavor"), choices=[("", ""), *((name, name) for name in flavors)]),
        "image": forms.CharField(label=_("Image"), max_length=255, required=False),
        "availability_zone": forms.ChoiceField(
            label=_("Zone"), choices=[("", _("any")), *((zone, zone) for zone in zones if zone)], required=False
        ),
        "size": forms.IntegerField(label=_("Members"), min_value=0, max_value=MAX_RESOURCES, required=False),
        "depends_on": forms.CharField(label=_("Created after"), required=False),
    }


def resource_of(row: Row) -> dict[str, Any]:
    """Return the resource of a template that a row describes."""
    server = {name: row[name] for name in ("flavor", "image", "availability_zone") if name in row}
    after = [name for text in row.get("depends_on", "").split(",") if (name := text.strip())]
    order = {"depends_on": after} if after else {}
    if "size" not in row:
        return {"type": "server", "properties": server, **order}
    properties = {"size": row["size"], "member": {"type": "server", "properties": server}}
    return {"type": "scaling_group", "properties": properties, **order}


def describe_template(template: Template) -> str:
    """Return a text with the number of servers of a normalised template, and their capacity."""
    demand = demand_of_template(template)
    number = demand["servers"]
    servers = ngettext("%(number)s server", "%(number)s servers", number) % {"number": number_format(number)}
    capacity = {"vcpus": number_format(demand["vcpus"]), "memory": gigabytes(demand["memory"])}
    taken = gettext("%(vcpus)s vCPU, %(memory)s GB of memory") % capacity
    return gettext("The template is valid: %(servers)s, %(taken)s.") % {"servers": servers, "taken": taken}


class TemplateForm(OperationForm):
    template = forms.CharField(
        label=_("Template"),
        strip=False,
        help_text=_("In YAML or JSON."),
        widget=forms.Textarea(attrs={"rows": ROWS, "class": "font-monospace", "spellcheck": "false", "wrap": "off"}),
    )

    timeout_mins = minutes_field()

    def describe_template(self) -> str:
        """Return a description of the template. Raises: `Refused`."""
        return describe_template(checked_template(self.cleaned_data["template"]))

    def add_refusal(self, refusal: str) -> None:
        """Add a refusal to its field. A refusal that begins with a path of the template is not changed."""
        name, _, text = refusal.partition(": ")
        if name == "template":
            self.add_error(name, text)
        else:
            super().add_refusal(refusal)


class NewStackForm(TemplateForm):
    name = name_field()
    project_id = project_field()

    field_order = ["name", "template", "project_id", "timeout_mins", "plan_only"]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.order_fields(self.field_order)
        self.fields["template"].widget.attrs["placeholder"] = EXAMPLE


class UpdateStackForm(TemplateForm):
    """Shows the template of a stack. If unchanged, resources that failed or are marked unhealthy are replaced."""

    revision = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, record: Stack, *arguments: Any, **options: Any) -> None:
        self.text = format_template(record.template)
        held = {"template": self.text, "revision": record.revision, "timeout_mins": record.timeout_mins}
        super().__init__(record, *arguments, initial=held, **options)
        self.fields["timeout_mins"].help_text = _("Leave empty to keep the current value.")
        self.fields["template"].help_text = _(
            "If unchanged, resources that failed or are marked unhealthy are replaced."
        )

    @property
    def inputs(self) -> dict[str, Any]:
        template, minutes = self.cleaned_data["template"], self.cleaned_data["timeout_mins"]
        given = {} if template_lines(template) == template_lines(self.text) else {"template": template}
        return given if minutes in (None, self.record.timeout_mins) else {**given, "timeout_mins": minutes}

    def clean(self) -> dict[str, Any]:
        """Refuse changes to a template that the stack no longer has."""
        cleaned = super().clean() or {}
        if cleaned.get("revision") != self.record.revision:
            raise forms.ValidationError(_("The stack was changed after this page was loaded. Reload the page."))
        return cleaned


def template_lines(text: str) -> list[str]:
    return text.strip().splitlines()
