"""Forms for the reason of a skip."""

from django import forms

from actions.models import REASON_LENGTH


class ReasonForm(forms.Form):
    """The reason of a skip, short enough for the action's message with its prefix."""

    reason = forms.CharField(
        required=False,
        max_length=REASON_LENGTH,
        label="Reason (optional)",
        help_text="Others read it beside the action, and in the plan's message.",
        widget=forms.Textarea(attrs={"rows": 2, "autofocus": True}),
    )


class NewReasonForm(ReasonForm):
    reason = forms.CharField(
        max_length=REASON_LENGTH, label="Another reason", widget=forms.Textarea(attrs={"rows": 2})
    )
