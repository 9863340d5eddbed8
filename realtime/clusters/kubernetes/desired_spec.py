"""Derives the specification of a cluster from its row and the installation's settings."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from django.conf import settings as django_settings

from foundation.database_roles import DatabaseRole
from foundation.environment import Environment, environment
from realtime.clusters.epochs import OwnGrid
from realtime.clusters.kubernetes.cluster_spec import (
    ClusterSpec,
    GridSpec,
    Installation,
    ServerAddress,
)
from realtime.models import Cluster

_POSTGRESQL_PORT, _VALKEY_PORT = 5432, 6379


def desired_spec(
    cluster: Cluster, slug: str, grids: Sequence[OwnGrid], *, awake: bool
) -> ClusterSpec:
    """Return the specification of a tenant's cluster.

    It depends only on the row and the settings.
    """
    settings = environment()
    offered = settings.rillbase_clusters_images
    return ClusterSpec(
        installation=installation(),
        tenant_id=cluster.tenant_id,
        slug=slug,
        grids=tuple(GridSpec(own.grid.epoch, own.grid.size) for own in grids),
        node_size=cluster.node_size,
        guaranteed=cluster.tier == Cluster.Tier.GUARANTEED,
        # An image that is no longer offered is replaced by the first one.
        image=offered.get(cluster.image) or next(iter(offered.values())),
        awake=awake,
        settings=_settings(settings),
        secrets=_secrets(settings, cluster.tenant_id),
    )


def installation() -> Installation:
    """Return the part of the specification that describes the installation."""
    settings = environment()
    return Installation(
        name=settings.rillbase_clusters_name,
        namespace=settings.rillbase_clusters_namespace,
        version=str(django_settings.SPECTACULAR_SETTINGS["VERSION"]),
        api_networks=tuple(settings.rillbase_clusters_api_networks),
        servers=(
            _server(settings.role_url(DatabaseRole.RELAY), _POSTGRESQL_PORT),
            _server(settings.events, _VALKEY_PORT),
        ),
    )


def _settings(settings: Environment) -> dict[str, str]:
    """Return the public settings of a grid's processes."""
    return {
        "RILLBASE_ENV": settings.rillbase_env,
        "RILLBASE_PUBLIC_URL": settings.rillbase_public_url,
        "RILLBASE_HOSTS": ",".join(settings.rillbase_hosts),
        "RILLBASE_LOG_FORMAT": settings.rillbase_log_format,
        "RILLBASE_LOG_LEVEL": settings.rillbase_log_level,
        # A grid sends no email.
        "RILLBASE_EMAIL_URL": "dir:///tmp",
        "RILLBASE_DATA_DIR": "/var/lib/rillbase",
        "HOME": "/tmp",  # noqa: S108 -- the pod's own
    }


def _secrets(settings: Environment, tenant_id: UUID) -> dict[str, str]:
    """Return the credentials of nodes: one role of the database, and the event layer.

    A process must have a secret key and a pepper. Those of a grid are derived from the
    installation's, deterministically, and give no access.
    """
    key, login = (
        settings.rillbase_secret_key.get_secret_value(),
        settings.role_url(DatabaseRole.RELAY),
    )
    return {
        "DATABASE_URL": _without_login(login),
        "DATABASE_RELAY_URL": login,
        "EVENTS_URL": settings.events,
        "RILLBASE_SECRET_KEY": _derive_secret(key, tenant_id, "secret-key"),
        "RILLBASE_KEY_PEPPER": _derive_secret(key, tenant_id, "key-pepper"),
        "RILLBASE_SPARK_SECRET": _derive_secret(key, tenant_id, "spark-secret"),
        "RILLBASE_METRICS_TOKEN": settings.rillbase_metrics_token.get_secret_value(),
    }


def _derive_secret(key: str, tenant_id: UUID, purpose: str) -> str:
    text = f"cluster:{tenant_id}:{purpose}"
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _server(url: str, usual_port: int) -> ServerAddress:
    parts = urlsplit(url)
    return ServerAddress(parts.hostname or "", parts.port or usual_port)
