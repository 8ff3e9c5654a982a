from typing import Any

from watcher_site.accounts.tokens import delete_expired_tokens
from watcher_site.processes.commands import Command as BaseCommand


class Command(BaseCommand):
    help = "Delete the API tokens that have expired."

    def handle(self, *args: Any, **options: Any) -> str:
        return f"{delete_expired_tokens()} deleted"
