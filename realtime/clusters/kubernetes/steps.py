"""Brings the existing objects to the desired state, one by one, and reports each step.

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


def apply_steps(server: ApiServer, cluster: ClusterSpec) -> Iterator[ApplyStep]:
    """Apply a cluster's objects; each step is yielded once it has been applied."""
    return _walk(server, cluster, dry_run=False)


def preview_steps(server: ApiServer, cluster: ClusterSpec) -> Iterator[ApplyStep]:
    """Yield what `apply_steps` would do, without doing it."""
    return _walk(server, cluster, dry_run=True)


def _walk(server: ApiServer, cluster: ClusterSpec, *, dry_run: bool) -> Iterator[ApplyStep]:
    rendered = render(cluster)
    space = Reference("Namespace", "", cluster.namespace)
    # A dry run is not possible in a namespace that does not exist.
    is_new_namespace = dry_run and server.get(space) is None
    live: dict[Reference, Object] | None = None
    for described in rendered:
        reference = Reference.of(described)
        if is_new_namespace:
            yield ApplyStep(Verb.CREATE, reference)
            continue
        if reference.kind in _FIRST:
            yield _apply(server, described, server.get(reference), dry_run=dry_run)
            continue
        if live is None:
            live = _live(server, cluster)
        yield _apply(server, described, live.get(reference), dry_run=dry_run)
    rendered_references = {Reference.of(described) for described in rendered}
    for reference in sorted((live or {}).keys() - rendered_references):
        if reference.kind in OF_A_GRID:
            if not dry_run:
                server.delete(reference)
            yield ApplyStep(Verb.DELETE, reference)


def _live(server: ApiServer, cluster: ClusterSpec) -> dict[Reference, Object]:
    selector: Mapping[str, str] = common(cluster)
    return {
        Reference.of(item, kind): {**item, "kind": kind}
        for kind in _LISTED
        for item in server.find(kind, cluster.namespace, selector)
    }


def _apply(
    server: ApiServer, described: Object, live: Object | None, *, dry_run: bool
) -> ApplyStep:
    reference = Reference.of(described)
    claimed_fields = None if live is None else taken_over(live)
    if live is not None and claimed_fields is not None and not dry_run:
        # The additions of others are claimed, so that this apply removes them.
        metadata = cast("Object", live["metadata"])
        server.own(reference, claimed_fields, str(metadata.get("resourceVersion", "")))
    after = server.apply(described, dry_run=dry_run)
    if live is None:
        return ApplyStep(Verb.CREATE, reference)
    changes = differences({**live, "kind": reference.kind}, after)
    if claimed_fields is not None and not changes:
        changes = [FieldDifference("(fields added by other managers)", HIDDEN, None)]
    return ApplyStep(Verb.CHANGE if changes else Verb.KEEP, reference, changes)
