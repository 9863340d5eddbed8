"""The desired state of a tenant's cluster: the only input of its Kubernetes objects.

The objects are a pure function of this specification, so equal specifications give equal objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from types import MappingProxyType
from typing import Final
from uuid import UUID

from realtime.grid.size import GridSize

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class NodeSize:
    """The resources of one executor, which runs `NODES_OF_EXECUTOR` nodes."""

    cpu_milli: int
    #: Memory of Java, which only passes tasks to Python.
    heap_mib: int
    #: Memory of Python, for the nodes' indexes and after-images.
    overhead_mib: int

    @property
    def memory_mib(self) -> int:
        return self.heap_mib + self.overhead_mib


SIZES: Final = MappingProxyType(
    {
        "small": NodeSize(500, 512, 512),
        "medium": NodeSize(1000, 512, 1536),
        "large": NodeSize(2000, 1024, 5120),
    }
)
#: Spark's driver with the supervisor, which distributes tasks and renews leases.
DRIVER: Final = NodeSize(500, 512, 1024)
#: The driver may briefly use more if its machine has capacity to spare.
DRIVER_BURST_MIB: Final = 512
NODES_OF_EXECUTOR: Final = 2


@dataclass(frozen=True, slots=True)
class GridSpec:
    """One grid epoch: while a cluster is resized there are two."""

    epoch: int
    size: GridSize

    @property
    def executors(self) -> int:
        return -(-self.size.nodes // NODES_OF_EXECUTOR)

    @property
    def name(self) -> str:
        """The name of its objects."""
        return f"grid-{self.epoch}"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server of the installation that nodes connect to."""

    host: str
    port: int

    @property
    def in_cluster(self) -> bool:
        """Whether it is a service in the same Kubernetes cluster."""
        return self.host.endswith((".svc", ".svc.cluster.local"))


@dataclass(frozen=True, slots=True)
class Installation:
    """The installation that the tenant belongs to."""

    name: str
    namespace: str
    version: str
    api_networks: tuple[Network, ...]
    servers: tuple[ServerAddress, ...]

    @property
    def provisioner(self) -> str:
        """The service account that creates the objects."""
        return f"{self.name}-provisioner"

    @property
    def provisioner_role(self) -> str:
        """The ClusterRole of that account in a tenant's namespace."""
        return f"{self.name}-tenant"

    @property
    def driver_role(self) -> str:
        """The ClusterRole of a driver in its namespace."""
        return f"{self.name}-driver"


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A tenant's cluster."""

    installation: Installation
    tenant_id: UUID
    slug: str
    grids: tuple[GridSpec, ...]
    node_size: str
    guaranteed: bool
    image: str
    #: While asleep, a cluster has all its objects but no pods.
    awake: bool
    #: Settings of the grid's processes, public and secret ones.
    settings: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> NodeSize:
        return SIZES[self.node_size]

    @property
    def namespace(self) -> str:
        return namespace_of(self.installation.name, self.tenant_id)


def namespace_of(installation: str, tenant_id: UUID) -> str:
    """Return the name of a tenant's namespace."""
    return f"{installation}-t-{tenant_id.hex}"
