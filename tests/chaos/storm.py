"""The storm: plans under way while processes are killed and put to sleep at random, and persons meddle."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from actions.models import Action
from plans.models import ActionPlan
from tests.chaos.fleet import Fleet
from tests.chaos.people import People
from tests.chaos.scenery import Scenery
from tests.chaos.verdict import given_up

# So many plans are under way at once; the next is started when one of them is over.
AT_ONCE = 6
# After about so many actions somebody does something to a plan.
MEDDLE_EVERY = 25


@dataclass(frozen=True)
class Weather:
    """The incidents of a storm: how often processes were killed, stopped, recovered, given up or refused."""

    seconds: float
    killed: int
    put_to_sleep: int
    recovered: int
    given_up: int
    refusals: int


class Pace:
    """Has something happen whenever about ``every`` so many actions more are over: as often on a slow machine as on a
    fast one, which by the clock would do nothing any more but begin again what was killed.
    """

    def __init__(self, chance: Random, every: float) -> None:
        self.chance, self.every = chance, every
        self.next = 0.0
        self.is_due(0)

    def is_due(self, over: int) -> bool:
        if over < self.next:
            return False
        self.next = over + self.chance.expovariate(1 / self.every)
        return True


def rage(
    fleet: Fleet,
    actions: int,
    seed: int,
    patience: float,
    every: float = 40,
    trouble: Callable[[], None] = lambda: None,
) -> Weather:
    """Run plans with this number of actions to their end, and strike about one of ``every`` actions.

    ``trouble`` is called many times a second, for other incidents.

    Raises:
        TimeoutError: they did not end within ``patience`` seconds.
    """
    chance = Random(seed)  # noqa: S311 (chance, no secret)
    people = People(Scenery(seed).plans(actions), chance)
    strikes, moods = Pace(chance, every), Pace(chance, MEDDLE_EVERY)
    begin = time.monotonic()
    while people.waiting or ActionPlan.objects.exclude(state__in=ActionPlan.FINAL).exists():
        if time.monotonic() - begin > patience:
            raise TimeoutError(f"after {patience:g} s: {Action.objects.count_states()}")
        if ActionPlan.objects.filter(state__in=["PENDING", *ActionPlan.RUNNING]).count() < AT_ONCE:
            people.prune_and_start()
        over = Action.objects.filter(state__in=Action.FINAL).count()
        if strikes.is_due(over):
            fleet.strike(chance)
        if moods.is_due(over):
            people.meddle()
        if chance.random() < 0.05:
            people.resume_all()
        fleet.check()
        trouble()
        time.sleep(0.05)
    recovered = Action.objects.filter(events__event="recover").distinct().count()
    return Weather(
        time.monotonic() - begin, fleet.killed, fleet.put_to_sleep, recovered, len(given_up()), people.refusals
    )
