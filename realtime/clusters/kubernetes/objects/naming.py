"""Names, labels and annotations: whose an object is, and which part."""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec, WantedGrid

Object = dict[str, object]

MANAGER = "rillbase-provisioner"
INSTALLATION = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
TENANT, TENANT_ID = "rillbase.dev/tenant", "rillbase.dev/tenant-id"
EPOCH = "rillbase.dev/grid-epoch"


def common(wanted: ClusterSpec) -> dict[str, str]:
    """Return what selects everything of a tenant's cluster. It never changes."""
    return {
        "app.kubernetes.io/name": "rillbase",
        INSTALLATION: wanted.installation.name,
        TENANT_ID: str(wanted.tenant_id),
    }


def selector(wanted: ClusterSpec, part: str, grid: WantedGrid | None = None) -> dict[str, str]:
    """Return what selects a part's pods, of one grid or of all."""
    pairs = {**common(wanted), COMPONENT: part}
    return pairs if grid is None else {**pairs, EPOCH: str(grid.epoch)}


def labels(wanted: ClusterSpec, part: str, grid: WantedGrid | None = None) -> dict[str, str]:
    """Return an object's labels."""
    return {
        **selector(wanted, part, grid),
        "app.kubernetes.io/part-of": "rillbase",
        "app.kubernetes.io/managed-by": MANAGER,
        "app.kubernetes.io/version": wanted.installation.version,
        # People read slugs; ids are what never changes.
        TENANT: wanted.slug,
    }


def metadata(
    wanted: ClusterSpec, part: str, name: str, about: str, grid: WantedGrid | None = None
) -> Object:
    """Return name, namespace, labels and what the object is there for."""
    return {
        "name": name,
        "namespace": wanted.namespace,
        "labels": labels(wanted, part, grid),
        "annotations": {"rillbase.dev/about": about},
    }
