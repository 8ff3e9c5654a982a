"""Goals, strategies, scoring engines, audit templates and audits."""

from audits.models.audits import Audit, is_continuous, is_event
from audits.models.catalogue import NAME_LENGTH, AuditTemplate, Goal, ScoringEngine, Strategy
from audits.models.periodic_purges import PeriodicPurge

__all__ = [
    "NAME_LENGTH",
    "Audit",
    "AuditTemplate",
    "Goal",
    "PeriodicPurge",
    "ScoringEngine",
    "Strategy",
    "is_continuous",
    "is_event",
]
