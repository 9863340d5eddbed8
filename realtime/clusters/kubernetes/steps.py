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


def take(server: ApiServer, spec: ClusterSpec) -> Iterator[ApplyStep]:
    """Apply a cluster's objects; each step is reported once it has been taken."""
    return _walk(server, spec, dry_run=False)


def foresee(server: ApiServer, spec: ClusterSpec) -> Iterator[ApplyStep]:
    """Report what `take` would do, without doing it."""
    return _walk(server, spec, dry_run=True)


def _walk(server: ApiServer, spec: ClusterSpec, *, dry_run: bool) -> Iterator[ApplyStep]:
    rendered = render(spec)
    space = Reference("Namespace", "", spec.namespace)
    # A dry run is not possible in a namespace that does not exist.
    alone = dry_run and server.get(space) is None
    live: dict[Reference, Object] | None = None
    for desired in rendered:
        reference = Reference.of(desired)
        if alone:
            yield ApplyStep(Verb.CREATE, reference)
            continue
        if reference.kind in _FIRST:
            yield _apply_object(server, desired, server.get(reference), dry_run=dry_run)
            continue
        if live is None:
            live = _live(server, spec)
        yield _apply_object(server, desired, live.get(reference), dry_run=dry_run)
    desired_references = {Reference.of(desired) for desired in rendered}
    for reference in sorted((live or {}).keys() - desired_references):
        if reference.kind in OF_A_GRID:
            if not dry_run:
                server.delete(reference)
            yield ApplyStep(Verb.DELETE, reference)


def _live(server: ApiServer, spec: ClusterSpec) -> dict[Reference, Object]:
    selector: Mapping[str, str] = common(spec)
    return {
        Reference.of(item, kind): {**item, "kind": kind}
        for kind in _LISTED
        for item in server.find(kind, spec.namespace, selector)
    }


def _apply_object(
    server: ApiServer, desired: Object, live: Object | None, *, dry_run: bool
) -> ApplyStep:
    reference = Reference.of(desired)
    managed_fields = None if live is None else taken_over(live)
    if live is not None and managed_fields is not None and not dry_run:
        # The additions of others are claimed, so that this apply removes them.
        metadata = cast("Object", live["metadata"])
        server.own(reference, managed_fields, str(metadata.get("resourceVersion", "")))
    applied = server.apply(desired, dry_run=dry_run)
    if live is None:
        return ApplyStep(Verb.CREATE, reference)
    changes = differences({**live, "kind": reference.kind}, applied)
    if managed_fields is not None and not changes:
        changes = [FieldDifference("(what others have added)", HIDDEN, None)]
    return ApplyStep(Verb.CHANGE if changes else Verb.KEEP, reference, changes)
