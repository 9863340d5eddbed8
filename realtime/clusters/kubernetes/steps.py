"""Brings the existing objects to the wanted state, one by one, and reports each step.

No state is kept between two runs: an interrupted run is simply repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec
from realtime.clusters.kubernetes.differences import (
    HIDDEN,
    FieldDifference,
    differences,
    taken_over,
)
from realtime.clusters.kubernetes.objects import render
from realtime.clusters.kubernetes.objects.naming import Object, common
from realtime.clusters.kubernetes.server import ApiServer, Reference

#: Kinds of which each grid epoch has objects, which are deleted when it is retired.
OF_A_GRID = ("Deployment", "Service", "ConfigMap", "PodDisruptionBudget")
#: Kinds that are read one by one: the provisioner may list the others once its binding exists.
_FIRST = ("Namespace", "RoleBinding")
_LISTED = (
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "NetworkPolicy",
    "Secret",
    *OF_A_GRID,
)


class Verb(StrEnum):
    """What happens to an object."""

    CREATE = "create"
    CHANGE = "change"
    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ApplyStep:
    """One object, and the change to apply to it."""

    verb: Verb
    object: Reference
    changes: list[FieldDifference] = field(default_factory=list)


def take(server: ApiServer, wanted: ClusterSpec) -> Iterator[ApplyStep]:
    """Apply a cluster's objects; each step is reported once it has been taken."""
    return _walk(server, wanted, dry_run=False)


def foresee(server: ApiServer, wanted: ClusterSpec) -> Iterator[ApplyStep]:
    """Report what `take` would do, without doing it."""
    return _walk(server, wanted, dry_run=True)


def _walk(server: ApiServer, wanted: ClusterSpec, *, dry_run: bool) -> Iterator[ApplyStep]:
    rendered = render(wanted)
    space = Reference("Namespace", "", wanted.namespace)
    # A dry run is not possible in a namespace that does not exist.
    alone = dry_run and server.get(space) is None
    live: dict[Reference, Object] | None = None
    for described in rendered:
        reference = Reference.of(described)
        if alone:
            yield ApplyStep(Verb.CREATE, reference)
            continue
        if reference.kind in _FIRST:
            yield _made(server, described, server.get(reference), dry_run=dry_run)
            continue
        if live is None:
            live = _live(server, wanted)
        yield _made(server, described, live.get(reference), dry_run=dry_run)
    kept = {Reference.of(described) for described in rendered}
    for reference in sorted((live or {}).keys() - kept):
        if reference.kind in OF_A_GRID:
            if not dry_run:
                server.delete(reference)
            yield ApplyStep(Verb.DELETE, reference)


def _live(server: ApiServer, wanted: ClusterSpec) -> dict[Reference, Object]:
    selector: Mapping[str, str] = common(wanted)
    return {
        Reference.of(item, kind): {**item, "kind": kind}
        for kind in _LISTED
        for item in server.find(kind, wanted.namespace, selector)
    }


def _made(server: ApiServer, described: Object, live: Object | None, *, dry_run: bool) -> ApplyStep:
    reference = Reference.of(described)
    ours = None if live is None else taken_over(live)
    if live is not None and ours is not None and not dry_run:
        # The additions of others are claimed, so that this apply removes them.
        metadata = cast("Object", live["metadata"])
        server.own(reference, ours, str(metadata.get("resourceVersion", "")))
    after = server.apply(described, dry_run=dry_run)
    if live is None:
        return ApplyStep(Verb.CREATE, reference)
    changes = differences({**live, "kind": reference.kind}, after)
    if ours is not None and not changes:
        changes = [FieldDifference("(what others have added)", HIDDEN, None)]
    return ApplyStep(Verb.CHANGE if changes else Verb.KEEP, reference, changes)
