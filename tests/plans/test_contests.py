"""Five thousand rounds in which two verbs begin at the same moment. `make chaos` runs more."""

import pytest

from tests.chaos.contests import CONTESTS, Contest
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = 5001


@pytest.mark.parametrize("contest", CONTESTS)
def test_of_two_verbs_one_wins_and_the_record_agrees_with_what_happened(contest: type[Contest]) -> None:
    outcomes = contest(Service.register(Service.APPLIER, "here")).run(ROUNDS // len(CONTESTS))
    # A race that always ends the same way is none.
    assert len({outcome.first for outcome in outcomes}) == 2
