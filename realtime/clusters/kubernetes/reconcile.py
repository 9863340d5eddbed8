"""Reconciles one tenant's cluster: applies its row to Kubernetes, and writes the result into the
row.

Each run checks everything again, so it does not matter how the last one ended. It first claims the
row for a while: concurrent runs would be harmless but redundant. A failed run is retried with
randomized exponential backoff, for this tenant only.
"""

from __future__ import annotations

import datetime
import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from celery.utils.time import get_exponential_backoff_interval
from django.utils import timezone

from realtime.clusters import epochs, grids
from realtime.clusters.epochs import OwnGrid
from realtime.clusters.kubernetes import conditions, events
from realtime.clusters.kubernetes.cluster_spec import ClusterSpec, namespace_of
from realtime.clusters.kubernetes.conditions import ClusterCondition
from realtime.clusters.kubernetes.desired_spec import desired_spec, installation
from realtime.clusters.kubernetes.objects.naming import Object, common
from realtime.clusters.kubernetes.server import (
    ApiServer,
    ApiServerRejection,
    ApiServerUnavailable,
    Reference,
)
from realtime.clusters.kubernetes.steps import ApplyStep, Verb, apply_steps
from realtime.models import Cluster
from tenants.models import Tenant

log = logging.getLogger(__name__)

ALIAS = "relay"
#: How long a run claims the row; longer than a task may take.
CLAIM_S = 150.0
#: The delay after the first failure, which doubles with each further one, and the longest.
RETRY_S, LONGEST_RETRY_S = 2, 300
#: Interval of reconciliation, during a change and otherwise.
SOON_S, STEADY_S = 3.0, 30.0
_FORBIDDEN = 403
#: Number of rejections of a new cluster before it counts as failing.
FRESH = 2

StepObserver = Callable[[ApplyStep], None]
"""Is called for each step that was taken."""


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """The result of a run, which is written into the row."""

    state: str
    conditions: list[ClusterCondition]
    quiet_since: datetime.datetime | None
    #: Whether nothing remains to be done except periodic checks.
    steady: bool


def reconcile(tenant_id: UUID, server: ApiServer, on_step: StepObserver = lambda _: None) -> None:
    """Advance the reconciliation of a tenant's cluster, if it is due."""
    cluster = claim(tenant_id)
    if cluster is None:
        return
    try:
        result = (
            _finalise(cluster, server)
            if cluster.deleting
            else _apply_desired_state(cluster, server, on_step)
        )
    except (ApiServerUnavailable, ApiServerRejection) as error:
        note_failure(cluster, error)
        return
    if result is not None:
        _note(cluster, result)


def claim(tenant_id: UUID) -> Cluster | None:
    """Claim a due row for a while."""
    now = timezone.now()
    until = now + datetime.timedelta(seconds=CLAIM_S)
    rows = Cluster.unscoped.using(ALIAS).filter(tenant_id=tenant_id)
    return rows.first() if rows.filter(due_at__lte=now).update(due_at=until) else None


def current_spec(cluster: Cluster) -> ClusterSpec:
    """Return the current specification of a cluster, without changing anything."""
    own = epochs.grids_after(cluster.tenant_id, cluster.size)
    awake, _ = _activity(cluster, own)
    return _desired_spec(cluster, own, awake=awake)


def _desired_spec(cluster: Cluster, own: list[OwnGrid], *, awake: bool) -> ClusterSpec:
    slug = Tenant.objects.using(ALIAS).values_list("slug", flat=True).get(pk=cluster.tenant_id)
    return desired_spec(cluster, slug, own, awake=awake)


def _apply_desired_state(
    cluster: Cluster, server: ApiServer, on_step: StepObserver
) -> ReconcileResult:
    epochs.add(cluster.tenant_id, cluster.size)
    own = _retire_outgrown(cluster, epochs.dedicated_epochs(cluster.tenant_id))
    awake, quiet_since = _activity(cluster, own)
    spec = _desired_spec(cluster, own, awake=awake)
    changed = 0
    for step in apply_steps(server, spec):
        changed += step.verb is not Verb.KEEP
        events.comment(server, spec.namespace, step)
        on_step(step)
    pods = conditions.pods(server.find("Pod", spec.namespace, common(spec)))
    watches = [grids.watches(own_grid.grid) for own_grid in own]
    causes = [cause for own_grid in own if (cause := grids.cause(own_grid.grid)) is not None]
    current = [
        conditions.applied(changed),
        conditions.running(pods, awake=awake, grids=len(own)),
        conditions.watching(awake=awake, watches=watches, cause=next(iter(causes), None)),
    ]
    _note_ready(own, watches)
    state = conditions.state(current, grids=len(own), awake=awake)
    steady = state in (Cluster.State.RUNNING, Cluster.State.IDLE)
    return ReconcileResult(state, current, quiet_since, steady)


def _retire_outgrown(cluster: Cluster, own: list[OwnGrid]) -> list[OwnGrid]:
    """Retire grids of other sizes once the desired one has been ready; return the rest."""
    desired = [own_grid for own_grid in own if own_grid.grid.size == cluster.size]
    if not any(own_grid.ready for own_grid in desired):
        return own
    for own_grid in own:
        if own_grid not in desired:
            epochs.retire(own_grid.grid.epoch)
    return desired


def _note_ready(own: list[OwnGrid], watches: list[bool]) -> None:
    for own_grid, all_watch in zip(own, watches, strict=True):
        if all_watch and not own_grid.ready:
            epochs.note_ready(own_grid.grid.epoch)


def _activity(cluster: Cluster, own: list[OwnGrid]) -> tuple[bool, datetime.datetime | None]:
    """Return whether anything should run, and since when no client has subscribed."""
    tenant = Tenant.objects.using(ALIAS).get(pk=cluster.tenant_id)
    if tenant.state != Tenant.State.ACTIVE:
        return False, cluster.quiet_since
    # A grid that never ran could not have had subscribers.
    if not any(own_grid.ready for own_grid in own) or any(
        grids.queries(own_grid.grid) for own_grid in own
    ):
        return True, None
    since = cluster.quiet_since or timezone.now()
    if cluster.idle_after_s is None:
        return True, since
    quiet_s = (timezone.now() - since).total_seconds()
    return quiet_s < cluster.idle_after_s, since


def _finalise(cluster: Cluster, server: ApiServer) -> ReconcileResult | None:
    """Remove everything, and the row when nothing is left."""
    # The shared grid takes over before anything stops.
    for own_grid in epochs.dedicated_epochs(cluster.tenant_id):
        epochs.retire(own_grid.grid.epoch)
    space = Reference("Namespace", "", namespace_of(installation().name, cluster.tenant_id))
    live = server.get(space)
    if live is None:
        epochs.disown(cluster.tenant_id)
        Cluster.unscoped.using(ALIAS).filter(pk=cluster.pk, deleting=True).delete()
        return None
    server.delete(space)
    condition = ClusterCondition("Removed", False, "NamespaceTerminating", _remaining(live))
    return ReconcileResult(Cluster.State.DELETING, [condition], None, steady=False)


def _remaining(space: Object) -> str:
    """Return what Kubernetes reports about a namespace that still exists."""
    status = space.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    messages = [
        str(condition.get("message"))
        for condition in listed or []
        if condition.get("status") == "True"
    ]
    return " ".join(messages) or "Its objects are being removed."


def orphans(server: ApiServer) -> Iterator[Reference]:
    """Return namespaces of this installation that belong to none of its clusters."""
    this_installation = installation()
    known = {
        namespace_of(this_installation.name, tenant_id)
        for tenant_id in Cluster.unscoped.using(ALIAS).values_list("tenant_id", flat=True)
    }
    labels = {
        "app.kubernetes.io/instance": this_installation.name,
        "app.kubernetes.io/component": "namespace",
    }
    for namespace in server.find("Namespace", "", labels):
        reference = Reference.of(namespace, "Namespace")
        if reference.name not in known:
            yield reference


def note_failure(cluster: Cluster, failed: ApiServerUnavailable | ApiServerRejection) -> None:
    """Record why a run has failed, and when the next one is due."""
    failures = cluster.failures + 1
    if isinstance(failed, ApiServerUnavailable):
        condition = ClusterCondition("Applied", None, "ApiServerUnavailable", str(failed))
    else:
        reason = "Forbidden" if failed.status == _FORBIDDEN else failed.reason
        condition = ClusterCondition("Applied", False, reason, failed.message)
    log.warning(
        "the dedicated grid of tenant %s: %s: %s",
        cluster.tenant_id,
        condition.reason,
        condition.message,
    )
    state = Cluster.State.DELETING if cluster.deleting else Cluster.State.FAILING
    if (
        cluster.state == Cluster.State.PENDING
        and condition.reason == "Forbidden"
        and failures <= FRESH
    ):
        # In a new namespace, it takes a moment until the provisioner's binding takes effect.
        state = Cluster.State.PENDING
    _update(
        cluster,
        [condition],
        state=state,
        failures=failures,
        due_at=_in(_retry_in_s(failures)),
    )


def _retry_in_s(failures: int) -> float:
    """Return the delay after a number of failures in a row; half of it is random."""
    full_s = get_exponential_backoff_interval(RETRY_S, failures - 1, LONGEST_RETRY_S)
    return float(full_s) * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret


def _note(cluster: Cluster, result: ReconcileResult) -> None:
    pause_s = STEADY_S if result.steady else SOON_S
    _update(
        cluster,
        result.conditions,
        state=result.state,
        quiet_since=result.quiet_since,
        failures=0,
        # The jitter spreads clusters that were created together.
        due_at=_in(pause_s * random.uniform(0.8, 1.2)),  # noqa: S311 -- no secret
    )


def _update(cluster: Cluster, current: list[ClusterCondition], **values: object) -> None:
    """Update the row, unless its specification has changed: then the next run is due."""
    merged = conditions.merged(cluster.conditions, current, timezone.now())
    rows = Cluster.unscoped.using(ALIAS).filter(pk=cluster.pk, version=cluster.version)
    rows.update(conditions=merged, **values)


def _in(seconds: float) -> datetime.datetime:
    return timezone.now() + datetime.timedelta(seconds=seconds)
