"""`purge_tokens` deletes the tokens that have expired."""

from datetime import timedelta
from io import StringIO

from django.contrib.auth.models import User
from django.core.management import call_command
from knox.models import get_token_model

from watcher_site.models import HistoryEntry


def test_only_expired_tokens_are_deleted(stranger: User) -> None:
    get_token_model().objects.create(stranger, expiry=timedelta(hours=-1))
    valid, _ = get_token_model().objects.create(stranger, expiry=timedelta(hours=1))
    get_token_model().objects.create(stranger, expiry=None)
    printed = StringIO()
    call_command("purge_tokens", stdout=printed)
    assert printed.getvalue() == "1 deleted\n"
    assert valid in get_token_model().objects.all()
    assert get_token_model().objects.count() == 2


def test_history_records_a_purge_only_if_tokens_were_deleted(stranger: User) -> None:
    get_token_model().objects.create(stranger, expiry=timedelta(hours=-1))
    for _ in range(2):
        call_command("purge_tokens")
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.details) == ("token.purge", {"number": 1})
