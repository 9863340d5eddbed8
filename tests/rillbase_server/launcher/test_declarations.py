"""The declarations of one start, and the environment of each process."""

import os
from pathlib import Path

import pytest

from rillbase_server.launcher.data_directory import DataDirectory
from rillbase_server.launcher.declarations import declare
from rillbase_server.launcher.options import UpOptions
from rillbase_server.launcher.secrets_file import Secrets
from rillbase_server.launcher.service import ServiceSpec
from tests.launcher_command import environment

SECRETS = Secrets()


@pytest.fixture(autouse=True)
def _nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)


def declared(tmp_path: Path, **options: object) -> dict[str, ServiceSpec]:
    given = UpOptions(tmp_path, **options)  # type: ignore[arg-type]
    return {
        service.name: service
        for service in declare(given, DataDirectory(tmp_path), SECRETS, temporary={})
    }


def test_all_services_are_declared_and_their_dependencies_exist(tmp_path: Path) -> None:
    services = declared(tmp_path)
    servers = ["initdb", "postgres", "valkey", "node"]
    ours = ["web", "worker", "background", "grid", "demo"]
    assert list(services) == [*servers, "prepare", *ours]
    for service in services.values():
        assert set(service.after) <= set(services)


def test_a_service_stops_no_later_than_those_that_it_needs(tmp_path: Path) -> None:
    services = declared(tmp_path)
    for service in services.values():
        for needed in service.after:
            assert service.stop_rank <= services[needed].stop_rank


def test_an_existing_database_cluster_is_not_created_again(tmp_path: Path) -> None:
    cluster = tmp_path / "postgres" / "data"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("18\n")
    services = declared(tmp_path)
    assert "initdb" not in services
    assert services["postgres"].after == ()


def test_configured_servers_are_used_instead_of_embedded_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://admin:secret@db.example/rillbase")
    monkeypatch.setenv("REDIS_URL", "redis://cache.example/0")
    monkeypatch.setenv("STORAGE_URL", "redis://admin:token@node.example:6390")
    services = declared(tmp_path)
    assert list(services) == [
        "prepare",
        "web",
        "worker",
        "background",
        "grid",
        "demo",
    ]
    assert services["prepare"].env["DATABASE_URL"].startswith("postgresql://admin:secret@")
    assert services["web"].env["DATABASE_URL"] == "postgresql://db.example/rillbase"
    assert services["web"].env["REDIS_URL"] == "redis://cache.example/0"
    assert services["web"].env["STORAGE_URL"] == "redis://admin:token@node.example:6390"


def test_only_the_preparation_gets_the_superusers_password(tmp_path: Path) -> None:
    services = declared(tmp_path)
    assert SECRETS.postgres_password in services["prepare"].env["DATABASE_URL"]
    for name in set(services) - {"prepare"}:
        assert SECRETS.postgres_password not in str(services[name].env)
        assert SECRETS.postgres_password not in str(services[name].argv)


def test_third_party_servers_get_no_secrets(tmp_path: Path) -> None:
    services = declared(tmp_path)
    for name in ("initdb", "postgres", "valkey", "node"):
        passed = str(services[name].env) + str(services[name].argv)
        for secret in (SECRETS.secret_key, SECRETS.key_pepper, SECRETS.valkey_password):
            assert secret not in passed


def test_only_the_storage_node_and_its_clients_get_its_token(
    tmp_path: Path,
) -> None:
    services = declared(tmp_path)
    assert services["node"].env["RILLBASE_NODE_TOKEN"] == SECRETS.storage_token
    assert SECRETS.storage_token in services["web"].env["STORAGE_URL"]
    for service in services.values():
        assert SECRETS.storage_token not in str(service.argv)
    for name in ("initdb", "postgres", "valkey"):
        assert SECRETS.storage_token not in str(services[name].env)


def test_the_users_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RILLBASE_SECRET_KEY", "mine")
    monkeypatch.setenv("RILLBASE_HOSTS", "rillbase.example")
    web = declared(tmp_path, port=9000)["web"]
    assert web.env["RILLBASE_SECRET_KEY"] == "mine"
    assert web.env["RILLBASE_HOSTS"] == "rillbase.example"
    assert web.env["RILLBASE_KEY_PEPPER"] == SECRETS.key_pepper


def test_development_conveniences_are_left_out_of_production(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert declared(tmp_path)["web"].env["RILLBASE_ALLOW_LOOPBACK_TARGETS"] == "true"
    assert "RILLBASE_ALLOW_LOOPBACK_TARGETS" not in declared(tmp_path, host="0.0.0.0")["web"].env
    assert declared(tmp_path)["web"].env["RILLBASE_DEFAULT_PLAN"] == "unlimited"
    monkeypatch.setenv("RILLBASE_ENV", "production")
    assert "RILLBASE_ALLOW_LOOPBACK_TARGETS" not in declared(tmp_path)["web"].env
    assert "RILLBASE_DEFAULT_PLAN" not in declared(tmp_path)["web"].env


def test_a_server_for_the_whole_network_answers_to_this_machines_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "box")
    options = UpOptions(tmp_path, host="0.0.0.0", port=9000)
    assert options.url == "http://127.0.0.1:9000"
    web = declared(tmp_path, host="0.0.0.0")["web"]
    assert "box" in web.env["RILLBASE_HOSTS"].split(",")


def test_production_gets_no_demo_whose_login_is_one_of_the_staff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--demo-json" in declared(tmp_path)["prepare"].argv
    monkeypatch.setenv("RILLBASE_ENV", "production")
    assert "--demo-json" not in declared(tmp_path)["prepare"].argv
