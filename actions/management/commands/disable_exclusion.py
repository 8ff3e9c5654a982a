"""``manage.py disable_exclusion``: suspend a rule until it is enabled again."""

from actions.management.commands import enable_exclusion


class Command(enable_exclusion.Command):
    help = "Have an exclusion exclude nothing until it is enabled again. What it skipped stays skipped."
    enabled = False
