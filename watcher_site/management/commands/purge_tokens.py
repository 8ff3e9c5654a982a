from typing import Any

from django.db import transaction
from django.utils import timezone
from knox.models import get_token_model

from watcher_site.accounts.tokens import delete_tokens
from watcher_site.history import record
from watcher_site.processes.commands import Command as BaseCommand


class Command(BaseCommand):
    help = "Delete the API tokens that have expired."

    def handle(self, *args: Any, **options: Any) -> str:
        return f"{purge()} deleted"


@transaction.atomic
def purge() -> int:
    deleted = delete_tokens(get_token_model().objects.filter(expiry__lt=timezone.now()))
    if deleted:
        record("token.purge", details={"number": deleted})
    return deleted
