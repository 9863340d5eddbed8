"""Events on objects, for users of kubectl."""

from __future__ import annotations

import datetime
import logging

from realtime.clusters.kubernetes.objects.naming import MANAGER, Object
from realtime.clusters.kubernetes.server import ApiServer, ApiServerRejection, ApiServerUnavailable
from realtime.clusters.kubernetes.steps import OF_A_GRID, ApplyStep, Verb

log = logging.getLogger(__name__)

MAX_PATHS = 5
_REASONS = {Verb.CREATE: "Created", Verb.CHANGE: "Changed", Verb.DELETE: "Removed"}


def comment(server: ApiServer, namespace: str, step: ApplyStep) -> None:
    """Write an event about a noteworthy change of an object. Nothing depends on it."""
    if step.verb is Verb.KEEP or (step.verb is Verb.CREATE and step.object.kind not in OF_A_GRID):
        return
    try:
        server.create_event(event(namespace, step, datetime.datetime.now(datetime.UTC)), namespace)
    except (ApiServerUnavailable, ApiServerRejection) as unsaid:
        log.info("no event about %s could be written: %s", step.object, unsaid)


def event(namespace: str, step: ApplyStep, now: datetime.datetime) -> Object:
    """Return the comment on a step."""
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{step.object.name}.", "namespace": namespace},
        "involvedObject": {
            "kind": step.object.kind,
            "namespace": namespace,
            "name": step.object.name,
        },
        "type": "Normal",
        "reason": _REASONS[step.verb],
        "message": _message(step),
        "source": {"component": MANAGER},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def _message(step: ApplyStep) -> str:
    if step.verb is not Verb.CHANGE:
        return f"Rillbase {_REASONS[step.verb].lower()} {step.object}."
    paths = [change.path for change in step.changes]
    more = f" and {len(paths) - MAX_PATHS} more" if len(paths) > MAX_PATHS else ""
    return "Restored as described:" + ", ".join(paths[:MAX_PATHS]) + more
