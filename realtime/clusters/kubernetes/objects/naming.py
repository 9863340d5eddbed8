"""Names, labels and annotations: the tenant and the part that an object belongs to."""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec, GridSpec

Object = dict[str, object]

MANAGER = "rillbase-provisioner"
INSTALLATION = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
TENANT, TENANT_ID = "rillbase.dev/tenant", "rillbase.dev/tenant-id"
EPOCH = "rillbase.dev/grid-epoch"


def common(wanted: ClusterSpec) -> dict[str, str]:
    """Return the labels that select all objects of a tenant's cluster. They never change."""
    return {
        "app.kubernetes.io/name": "rillbase",
        INSTALLATION: wanted.installation.name,
        TENANT_ID: str(wanted.tenant_id),
    }


def selector(wanted: ClusterSpec, part: str, grid: GridSpec | None = None) -> dict[str, str]:
    """Return the labels that select a part's pods, of one grid or of all."""
    pairs = {**common(wanted), COMPONENT: part}
    return pairs if grid is None else {**pairs, EPOCH: str(grid.epoch)}


def labels(wanted: ClusterSpec, part: str, grid: GridSpec | None = None) -> dict[str, str]:
    """Return an object's labels."""
    return {
        **selector(wanted, part, grid),
        "app.kubernetes.io/part-of": "rillbase",
        "app.kubernetes.io/managed-by": MANAGER,
        "app.kubernetes.io/version": wanted.installation.version,
        # Slugs are readable; ids are unique forever.
        TENANT: wanted.slug,
    }


def metadata(
    wanted: ClusterSpec, part: str, name: str, about: str, grid: GridSpec | None = None
) -> Object:
    """Return name, namespace, labels and the purpose of the object."""
    return {
        "name": name,
        "namespace": wanted.namespace,
        "labels": labels(wanted, part, grid),
        "annotations": {"rillbase.dev/about": about},
    }
