"""Specifications of tenants' clusters, for tests."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from uuid import UUID

from realtime.clusters.kubernetes.cluster_spec import (
    ClusterSpec,
    GridSpec,
    Installation,
    ServerAddress,
)
from realtime.grid.size import GridSize

TENANT = UUID("01a1ffb7-61c1-721e-b902-9f470656bdc8")
INSTALLATION = Installation(
    name="rb",
    namespace="data",
    version="0.1.0",
    api_networks=(ip_network("10.0.0.1/32"),),
    servers=(
        ServerAddress("rb-postgresql.data.svc", 5432),
        ServerAddress("rb-valkey-events.data.svc", 6379),
    ),
)
USUAL = ClusterSpec(
    installation=INSTALLATION,
    tenant_id=TENANT,
    slug="acme",
    grids=(GridSpec(1001, GridSize(2)),),
    node_size="small",
    guaranteed=False,
    image="rillbase/spark:0.1.0",
    awake=True,
    settings={"RILLBASE_ENV": "production"},
    secrets={
        "EVENTS_URL": "redis://:very-secret@rb-valkey-events.data.svc:6379/0",
        "RILLBASE_SPARK_SECRET": "very-secret-too",
    },
)
#: By name, what tenants may want.
CLUSTER_SPECS = {
    "usual": USUAL,
    "large and guaranteed": replace(USUAL, node_size="large", guaranteed=True),
    "while it is resized": replace(
        USUAL, grids=(GridSpec(1001, GridSize(2)), GridSpec(1002, GridSize(8)))
    ),
    "asleep": replace(USUAL, awake=False),
    "servers elsewhere": replace(
        USUAL,
        installation=replace(INSTALLATION, servers=(ServerAddress("db.example.com", 5433),)),
    ),
}
