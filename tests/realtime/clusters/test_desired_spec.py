"""The desired state of a cluster, derived from its row and the installation's settings."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from foundation.database_roles import DatabaseRole, role_password
from foundation.environment import environment
from realtime.clusters.epochs import OwnGrid
from realtime.clusters.kubernetes.cluster_spec import ClusterSpec, GridSpec, ServerAddress
from realtime.clusters.kubernetes.desired_spec import desired_spec
from realtime.grid.layout import GridEpoch
from realtime.grid.size import GridSize
from realtime.models import Cluster

GRIDS = [OwnGrid(GridEpoch(1, 1001, 2), ready=True), OwnGrid(GridEpoch(1, 1002, 4), ready=False)]
SECRET = "s" * 40


@pytest.fixture(autouse=True)
def installation(settings_environment: pytest.MonkeyPatch) -> None:
    settings_environment.setenv("RILLBASE_SECRET_KEY", SECRET)
    settings_environment.setenv("RILLBASE_KEY_PEPPER", "p" * 40)
    settings_environment.setenv("DATABASE_URL", "postgresql://rb-postgresql.data.svc/rillbase")
    settings_environment.setenv("EVENTS_URL", "redis://:password@valkey.example.com:6380/0")
    settings_environment.setenv("RILLBASE_CLUSTERS_NAMESPACE", "data")


def row(**values: object) -> Cluster:
    usual: dict[str, object] = {"write_partitions": 4, "node_size": "small", "tier": "burstable"}
    return Cluster(tenant_id=uuid4(), **{**usual, **values})


def wished(cluster: Cluster) -> ClusterSpec:
    return desired_spec(cluster, "acme", GRIDS, awake=True)


def test_all_active_grid_epochs_are_desired() -> None:
    assert wished(row()).grids == (GridSpec(1001, GridSize(2)), GridSpec(1002, GridSize(4)))


def test_the_specification_is_deterministic_and_secrets_differ_by_tenant() -> None:
    cluster, other = row(), row()
    assert wished(cluster) == wished(cluster)
    first, second = wished(cluster).secrets, wished(other).secrets
    assert first["RILLBASE_SECRET_KEY"] != second["RILLBASE_SECRET_KEY"]


def test_nodes_get_one_login_and_none_of_the_installations_keys() -> None:
    secrets = wished(row()).secrets
    assert role_password(SECRET, DatabaseRole.RELAY) in secrets["DATABASE_RELAY_URL"]
    assert secrets["DATABASE_URL"] == "postgresql://rb-postgresql.data.svc/rillbase"
    values = "".join(secrets.values())
    for role in set(DatabaseRole) - {DatabaseRole.RELAY}:
        assert role_password(SECRET, role) not in values
    assert SECRET not in values
    assert environment().rillbase_key_pepper.get_secret_value() not in values


def test_nodes_can_start_in_production_with_their_settings(
    settings_environment: pytest.MonkeyPatch,
) -> None:
    from foundation.environment import Environment

    production = {
        "RILLBASE_ENV": "production",
        "RILLBASE_PUBLIC_URL": "https://db.example.com",
        "RILLBASE_HOSTS": "db.example.com",
    }
    for name, value in production.items():
        settings_environment.setenv(name, value)
    settings_environment.setenv("RILLBASE_ALLOW_LOOPBACK_TARGETS", "false")
    settings_environment.setenv("RILLBASE_EMAIL_URL", "smtp://mail.example.com")
    spec = wished(row())
    for name, value in {**spec.settings, **spec.secrets}.items():
        settings_environment.setenv(name, value)
    assert Environment().role_url(DatabaseRole.RELAY) == spec.secrets["DATABASE_RELAY_URL"]
    assert Environment().rillbase_env == "production"


def test_servers_are_specified_by_host_and_port() -> None:
    installation = wished(row()).installation
    assert installation.namespace == "data"
    assert installation.servers == (
        ServerAddress("rb-postgresql.data.svc", 5432),
        ServerAddress("valkey.example.com", 6380),
    )
    assert [server.in_cluster for server in installation.servers] == [True, False]


@pytest.mark.parametrize(
    ("chosen", "image"),
    [("", "rillbase/spark:1"), ("next", "rillbase/spark:2"), ("gone", "rillbase/spark:1")],
)
def test_an_image_has_to_be_an_offered_one(chosen: str, image: str) -> None:
    assert wished(row(image=chosen)).image == image


def test_a_specification_can_be_used_without_its_secrets() -> None:
    assert "password" not in repr(wished(row()))
    assert replace(wished(row()), secrets={}).namespace.startswith("rillbase-t-")
