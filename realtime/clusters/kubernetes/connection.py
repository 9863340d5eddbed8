"""How to reach the API server: with the service account of this pod, or with a kubeconfig file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from foundation.environment import environment
from realtime.clusters.kubernetes.server import ApiServer, ApiServerUnavailable


@contextmanager
def api_server() -> Iterator[ApiServer]:
    """Connect, or raise `ApiServerUnavailable`."""
    # Importing it takes seconds.
    from kubernetes import client, config  # noqa: PLC0415

    settings = client.Configuration()
    file = environment().rillbase_clusters_kubeconfig
    try:
        if file:
            config.load_kube_config(file, client_configuration=settings)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError) as error:
        source = file or "the service account of this pod"
        raise ApiServerUnavailable(
            f"{source} does not specify how to reach Kubernetes: {error}"
        ) from None
    server = ApiServer(client.ApiClient(settings))
    try:
        yield server
    finally:
        server.close()
