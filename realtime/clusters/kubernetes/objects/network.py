"""Network policies: no traffic enters from, or leaves for, another tenant's namespace."""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec
from realtime.clusters.kubernetes.objects.naming import TENANT_ID, Object, metadata, selector
from realtime.clusters.kubernetes.objects.pods import BLOCKS_PORT, DRIVER_PORT, HTTP_PORT

_DNS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
_API_PORTS = (443, 6443)


def policies(cluster: ClusterSpec) -> list[Object]:
    """Return the policy that denies everything, and those that allow the required connections."""
    driver, executor = _pods(cluster, "grid"), _pods(cluster, "executor")
    scrapers = {
        "namespaceSelector": {"matchExpressions": [{"key": TENANT_ID, "operator": "DoesNotExist"}]}
    }
    api = [{"ipBlock": {"cidr": str(network)}} for network in cluster.installation.api_networks]
    return [
        _policy(cluster, "closed", "Only DNS lookups are allowed", {}, [], [{"ports": _DNS}]),
        _policy(
            cluster,
            "driver",
            "Executors connect to the driver; monitoring reads metrics",
            driver,
            [
                {"from": [{"podSelector": executor}], "ports": _tcp(DRIVER_PORT, BLOCKS_PORT)},
                {"from": [scrapers], "ports": _tcp(HTTP_PORT)},
            ],
            [
                {"to": [{"podSelector": executor}]},
                {"to": api, "ports": _tcp(*_API_PORTS)},
            ],
        ),
        _policy(
            cluster,
            "executors",
            "Driver and executors exchange blocks",
            executor,
            [{"from": [{"podSelector": driver}, {"podSelector": executor}]}],
            [{"to": [{"podSelector": driver}, {"podSelector": executor}]}],
        ),
        _policy(
            cluster,
            "servers",
            "Nodes read documents from PostgreSQL and after-images from the event layer",
            {},
            None,
            [_egress_to_servers(cluster, in_cluster=inside) for inside in _kinds(cluster)],
        ),
    ]


def _kinds(cluster: ClusterSpec) -> list[bool]:
    return sorted({server.in_cluster for server in cluster.installation.servers})


def _egress_to_servers(cluster: ClusterSpec, *, in_cluster: bool) -> Object:
    servers = cluster.installation.servers
    ports = sorted({server.port for server in servers if server.in_cluster == in_cluster})
    if not in_cluster:
        # These servers are outside the cluster, known only by name.
        return {"ports": _tcp(*ports)}
    namespace = {"kubernetes.io/metadata.name": cluster.installation.namespace}
    return {"to": [{"namespaceSelector": {"matchLabels": namespace}}], "ports": _tcp(*ports)}


def _policy(
    cluster: ClusterSpec,
    name: str,
    about: str,
    pods: Object,
    ingress: list[Object] | None,
    egress: list[Object],
) -> Object:
    """Return a policy; without `ingress`, it does not restrict incoming traffic."""
    spec: Object = {"podSelector": pods, "policyTypes": ["Egress"], "egress": egress}
    if ingress is not None:
        spec |= {"policyTypes": ["Ingress", "Egress"], "ingress": ingress}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(cluster, "network", name, about),
        "spec": spec,
    }


def _pods(cluster: ClusterSpec, part: str) -> Object:
    return {"matchLabels": selector(cluster, part)}


def _tcp(*ports: int) -> list[Object]:
    return [{"port": port, "protocol": "TCP"} for port in ports]
