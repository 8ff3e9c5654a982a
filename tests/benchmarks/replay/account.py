"""The cost of a day: energy from the hosts' power tables, and the time in which hosts were overloaded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

JOULES = 3.6e6


def power(table: Sequence[float], load: float) -> float:
    """Return the power of a host in W at a load of 0 to 1, interpolated between equidistant values of the table."""
    position = min(max(load, 0), 1) * (len(table) - 1)
    below = min(int(position), len(table) - 2)
    return table[below] + (table[below + 1] - table[below]) * (position - below)


@dataclass
class Account:
    """Sums over the intervals of a replay. ``tables`` contains the power table of each host.

    A host is active while it has servers, and overloaded while these request its whole processor or more. Without
    servers it is asleep and uses no power, unless it is given as idle.
    """

    tables: Mapping[str, Sequence[float]]
    seconds: float
    joules: float = 0
    active: Counter[str] = field(default_factory=Counter)
    overloaded: Counter[str] = field(default_factory=Counter)
    requested: float = 0
    unserved: float = 0
    intervals: int = 0

    def add(self, demand: Mapping[str, float], capacity: Mapping[str, float], idle: Sequence[str] = ()) -> None:
        """Add one interval: the vcpus that the servers of each active host request, and the vcpus of all hosts."""
        self.intervals += 1
        for host, wanted in demand.items():
            load = wanted / capacity[host]
            self.joules += self.seconds * power(self.tables[host], load)
            self.active[host] += 1
            self.overloaded[host] += load >= 1
            self.requested += wanted
            self.unserved += max(wanted - capacity[host], 0)
        self.joules += self.seconds * sum(power(self.tables[host], 0) for host in idle if host not in demand)

    @property
    def energy(self) -> float:
        """Return the energy in kWh."""
        return self.joules / JOULES

    @property
    def active_hosts(self) -> float:
        """Return how many hosts were active on average."""
        return self.active.total() / max(self.intervals, 1)

    @property
    def overload(self) -> float:
        """Return the share of all active host time that was overloaded, in percent."""
        return 100 * self.overloaded.total() / max(self.active.total(), 1)

    @property
    def overload_by_host(self) -> float:
        """Return that share of each host that was ever active, in percent: the mean of these hosts."""
        shares = [self.overloaded[host] / intervals for host, intervals in self.active.items()]
        return 100 * sum(shares) / max(len(shares), 1)

    @property
    def unserved_share(self) -> float:
        """Return the share of the requested processor time that the hosts did not have, in percent."""
        return 100 * self.unserved / self.requested if self.requested else 0.0
