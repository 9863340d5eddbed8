"""Names, labels and annotations: the tenant and the part that an object belongs to."""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec, GridSpec

Object = dict[str, object]

MANAGER = "rillbase-provisioner"
INSTALLATION = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
TENANT, TENANT_ID = "rillbase.dev/tenant", "rillbase.dev/tenant-id"
EPOCH = "rillbase.dev/grid-epoch"


def common(cluster: ClusterSpec) -> dict[str, str]:
    """Return the labels that select all objects of a tenant's cluster. They never change."""
    return {
        "app.kubernetes.io/name": "rillbase",
        INSTALLATION: cluster.installation.name,
        TENANT_ID: str(cluster.tenant_id),
    }


def selector(cluster: ClusterSpec, part: str, grid: GridSpec | None = None) -> dict[str, str]:
    """Return the labels that select a part's pods, of one grid or of all."""
    pairs = {**common(cluster), COMPONENT: part}
    return pairs if grid is None else {**pairs, EPOCH: str(grid.epoch)}


def labels(cluster: ClusterSpec, part: str, grid: GridSpec | None = None) -> dict[str, str]:
    """Return an object's labels."""
    return {
        **selector(cluster, part, grid),
        "app.kubernetes.io/part-of": "rillbase",
        "app.kubernetes.io/managed-by": MANAGER,
        "app.kubernetes.io/version": cluster.installation.version,
        # Slugs are readable; ids are unique forever.
        TENANT: cluster.slug,
    }


def metadata(
    cluster: ClusterSpec, part: str, name: str, about: str, grid: GridSpec | None = None
) -> Object:
    """Return name, namespace, labels and the purpose of the object."""
    return {
        "name": name,
        "namespace": cluster.namespace,
        "labels": labels(cluster, part, grid),
        "annotations": {"rillbase.dev/about": about},
    }
