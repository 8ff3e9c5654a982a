"""``manage.py disable_exclusion``: disable a rule until it is enabled again."""

from actions.management.commands import enable_exclusion


class Command(enable_exclusion.Command):
    help = "Disable an exclusion until it is enabled again. Actions that it skipped stay skipped."
    enabled = False
