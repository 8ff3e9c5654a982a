"""Queries for action plans, and operations on several of them."""

from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from actions.models import Action
from plans import messages
from watcher_site.database.records import RecordQuerySet
from watcher_site.messages import cut
from watcher_site.models import Service
from watcher_site.outbox.writing import NotifiesUpdates
from watcher_site.refusals import NotFound


class ActionPlanQuerySet(NotifiesUpdates, RecordQuerySet):
    def find(self, uuid: UUID) -> Any:
        """Return the plan with this UUID.

        Raises:
            NotFound: the plan does not exist or was deleted.
        """
        plan = self.present().filter(uuid=uuid).first()
        if plan is None:
            raise NotFound(messages.PLAN_NOT_FOUND.fill(uuid=uuid))
        return plan

    def reread(self, plan: Any) -> Any:
        """Return the current row of a plan, even if the plan is marked as deleted.

        Raises:
            NotFound: the row was purged.
        """
        current = self.filter(pk=plan.pk).first()
        if current is None:
            raise NotFound(messages.PLAN_NOT_FOUND.fill(uuid=plan.uuid))
        return current

    def locked(self) -> Self:
        """Lock these rows until the transaction ends, so that no other process begins, ends or changes the plans."""
        return self.select_for_update(no_key=True)

    def waiting(self) -> Self:
        """Select the started plans that no applier has claimed, oldest first."""
        return self.present().filter(state=self.model.State.PENDING).order_by("pk")

    def open(self) -> Self:
        """Select the plans whose actions may begin now, by the clock of the database, which all processes share."""
        has_opened = Q(opens_at__isnull=True) | Q(opens_at__lte=Now())
        is_open = has_opened & (Q(closes_at__isnull=True) | Q(closes_at__gt=Now()))
        return self.filter(is_open, suspended_by__isnull=True)

    def closed(self) -> Self:
        """Select the unfinished plans whose current period is over, and which wait for the next one."""
        states = (self.model.State.PENDING, self.model.State.ONGOING)
        return self.present().filter(state__in=states, closes_at__lte=Now())

    def running(self) -> Self:
        return self.present().filter(state__in=self.model.RUNNING)

    def changing_cloud(self) -> Self:
        """Select the ongoing plans that change the cloud, without plans that only wait for a PENDING server.

        Including the latter would prevent the plans that free capacity for their servers.
        """
        own = Action.objects.present().filter(action_plan=OuterRef("pk"))
        at_work = Exists(own.filter(state__in=Action.BEGUN))
        waits = Exists(own.filter(state=Action.State.PENDING, data__waits_for__isnull=False))
        return self.filter(state=self.model.State.ONGOING).exclude(~at_work & waits)

    def available_to(self, applier: Service) -> Self:
        """Select the running plans of this applier, and the plans whose applier is lost."""
        return self.running().exclude(applier__in=Service.objects.active().exclude(pk=applier.pk).values("pk"))

    def with_progress(self) -> Self:
        """Annotate each plan with the numbers of its actions.

        The columns are ``total_actions``, ``finished_actions`` (of the executed ones) and ``skipped_actions``.
        """
        actions = Action.objects.present().filter(action_plan=OuterRef("pk")).order_by().values("action_plan")

        def number(condition: Q) -> Coalesce:
            return Coalesce(Subquery(actions.annotate(number=Count("pk", filter=condition)).values("number")), 0)

        return self.annotate(
            total_actions=number(Q()),
            finished_actions=number(Q(state__in=Action.CARRIED_OUT)),
            skipped_actions=number(Q(state=Action.State.SKIPPED)),
        )

    def with_operation(self) -> Self:
        """Annotate each plan without an audit with ``operation``, the type and name of its first action."""
        return self.annotate(operation=Action.objects.plan_operation())

    def with_names(self) -> Self:
        """Select the plans with the columns that their names need."""
        return self.with_operation().select_related("audit")

    def adopt(self, applier: Service) -> bool:
        """Take over the plan of this queryset if it has no living applier, and return whether this succeeded.

        The caller has filtered by the previous owner, so that only one of several appliers succeeds.
        """
        return bool(self.available_to(applier).update(applier=applier, hostname=applier.host))

    def release(self, applier: Service) -> int:
        """Release the running plans of an applier, so that another applier adopts them immediately."""
        return self.running().filter(applier=applier).update(applier=None)

    def held_by(self, applier: Service) -> Self:
        """Select the waiting and running plans that no other applier owns."""
        is_free = Q(applier=None) | Q(applier=applier)
        return self.present().filter(is_free, state__in=[self.model.State.PENDING, *self.model.RUNNING])

    def fail_silently(self, message: str) -> int:
        """End these plans as FAILED, even if their rows are invalid, without notifications."""
        now = timezone.now()
        return QuerySet.update(
            self,
            state=self.model.State.FAILED,
            status_message=cut(message),
            applier=None,
            context=None,
            end_time=now,
            updated_at=now,
        )

    def older_than(self, age: timedelta) -> Self:
        return self.filter(created_at__lt=timezone.now() - age)

    @transaction.atomic
    def supersede(self, message: str, action_message: str) -> int:
        """Supersede the RECOMMENDED plans, cancel their pending actions, and return the number of plans."""
        return self.end_unstarted(
            self.model.sources("supersede"), self.model.State.SUPERSEDED, message, action_message
        )

    @transaction.atomic
    def cancel_recommended(self, message: str, action_message: str) -> int:
        """Cancel the RECOMMENDED plans with their pending actions, and return the number of plans."""
        return self.end_unstarted(self.model.sources("supersede"), self.model.State.CANCELLED, message, action_message)

    @transaction.atomic
    def cancel_unfinished(self, message: str) -> int:
        """Cancel the plans, those that have begun through their appliers, and return the number of plans."""
        running = self.present().filter(state__in=self.model.sources("request_cancel"))
        cancelling = self.write_state(running, self.model.State.CANCELLING, message)
        return cancelling + self.end_unstarted(
            self.model.sources("cancel"), self.model.State.CANCELLED, message, message
        )

    def end_unstarted(self, sources: set[str], target: str, message: str, action_message: str) -> int:
        """End plans that have not begun, so that no applier begins them."""
        keys = self.lock_in_order(sources)
        if keys:
            self.write_state(self.model.objects.filter(pk__in=keys), target, message)
            self.model.objects.filter(pk__in=keys).exclude(context=None).update(context=None)
            Action.objects.filter(action_plan__in=keys).cancel_pending(action_message)
        return len(keys)

    def lock_in_order(self, sources: set[str]) -> list[int]:
        """Lock the plans in these states, in the order of their keys, and return the keys.

        Skips and starts lock the row of the plan, too: they are either complete before this, or refused.
        """
        chosen = self.present().filter(state__in=sources).order_by().values("pk")
        plans = self.model.objects.filter(pk__in=chosen, state__in=sources).order_by("pk").select_for_update()
        return list(plans.values_list("pk", flat=True))

    @staticmethod
    def write_state(plans: "ActionPlanQuerySet", state: str, message: str) -> int:
        now = timezone.now()
        ended = {"end_time": now} if state in plans.model.FINAL else {}
        return plans.update(state=state, status_message=cut(message), updated_at=now, **ended)
