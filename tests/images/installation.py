"""The installation of the compose file: images of ours in containers, other servers beside them.

Names of services are addresses of this machine, so nothing else may use its ports: the tests run in
a network namespace of their own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from rillbase_server.launcher.embedded import EmbeddedPostgres
from rillbase_server.launcher.valkey import binary
from scripts.images.images import IMAGES
from tests.images import compose
from tests.images.conftest import GetImage
from tests.images.container import Container
from tests.own_process import OwnProcess
from tests.waiting import wait_until

START_TIMEOUT_S = 300.0
ADDRESSES = {"postgresql": "127.0.0.1", "valkey-broker": "127.0.1.1", "valkey-events": "127.0.1.2"}
OURS = ("storage-node", "migrations", "app", "background", "worker", "grid")


class ComposedValkey(OwnProcess):
    """A Valkey with the arguments of the compose file."""

    def __init__(self, folder: Path, address: str, arguments: list[str]) -> None:
        self._address = address
        self._arguments = [str(folder) if each == "/data" else each for each in arguments]
        super().__init__(folder, port=6379)

    @property
    def url(self) -> str:
        return f"redis://{self._address}:6379/0"

    def _command(self) -> list[str]:
        return [str(binary()), "--bind", self._address, *self._arguments]


class Installation:
    """The services that run images of ours."""

    def __init__(self, image: GetImage, folder: Path) -> None:
        self.services = compose.services()
        hosts = {name: ADDRESSES.get(name, "127.0.0.1") for name in self.services}
        self.containers = {
            name: self._container(image, folder, name, hosts)
            for name in self.services
            if name in OURS
        }

    def start(self, name: str) -> None:
        self.containers[name].start(self.services[name].get("command", ()))

    def is_healthy(self, name: str) -> bool:
        """Run the service's health check as an engine does."""
        container = self.containers[name]
        assert container.is_running, container.output[-4000:]
        kind, *command = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return container.run(*command).returncode == 0

    def await_health(self, name: str) -> None:
        wait_until(
            lambda: self.is_healthy(name), what=f"a healthy {name}", timeout_s=START_TIMEOUT_S
        )

    def run(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        return self.containers[name].run(*command)

    def close(self) -> None:
        for container in self.containers.values():
            container.close()

    def _container(
        self, image: GetImage, folder: Path, name: str, hosts: Mapping[str, str]
    ) -> Container:
        service = self.services[name]
        repository = service["image"].rpartition(":")[0]
        (wanted,) = (each for each in IMAGES if repository == f"rillbase/{each.name}")
        return Container(
            image(wanted.name),
            folder / name,
            environment=_text(service["environment"]),
            volumes=dict(self._volumes(folder, service)),
            hosts=hosts,
        )

    @staticmethod
    def _volumes(folder: Path, service: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
        for volume in service.get("volumes", ()):
            name, _, path = volume.partition(":")
            yield path, folder / f"volume-{name}"


def _text(environment: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in environment.items()}


@contextmanager
def started(image: GetImage, folder: Path) -> Iterator[Installation]:
    """Start everything in the compose file's order, and wait until it is healthy."""
    folder.mkdir()
    with ExitStack() as servers:
        described = compose.services()
        postgres = EmbeddedPostgres(
            folder / "postgresql",
            superuser_password=compose.SECRETS["POSTGRES_PASSWORD"],
            port=5432,
            durable=False,
        )
        servers.enter_context(postgres)
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE rillbase")
        for name in ("valkey-broker", "valkey-events"):
            valkey = ComposedValkey(folder / name, ADDRESSES[name], described[name]["command"])
            servers.callback(valkey.close)
        installation = Installation(image, folder)
        servers.callback(installation.close)
        installation.start("migrations")
        migrations = installation.containers["migrations"]
        assert migrations.wait(START_TIMEOUT_S) == 0, migrations.output
        installation.start("storage-node")
        installation.await_health("storage-node")
        for name in ("app", "background", "worker", "grid"):
            installation.start(name)
        for name in ("app", "background", "worker", "grid"):
            installation.await_health(name)
        yield installation
