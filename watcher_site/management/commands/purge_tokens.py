from typing import Any

from django.utils import timezone
from knox.models import get_token_model

from watcher_site.commands import Command as BaseCommand


class Command(BaseCommand):
    help = "Delete the API tokens that have expired."

    def handle(self, *args: Any, **options: Any) -> str:
        deleted, _ = get_token_model().objects.filter(expiry__lt=timezone.now()).delete()
        return f"{deleted} deleted"
