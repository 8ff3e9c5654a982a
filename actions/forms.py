"""What a person writes about a skipped action."""

from django import forms

from actions.models import REASON_LENGTH


class ReasonForm(forms.Form):
    """Why an action is skipped: as long as it fits into the action's message with what is put before it."""

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
