"""An installation that starts quickly: what live queries need, and a copy of a test database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import redis

from rillbase_server.launcher.account import private_directory, server_account
from rillbase_server.launcher.postgres import PostgresCluster, binary
from rillbase_server.launcher.valkey import ValkeyStore
from tests.chaos.live.installation import ROOT, Installation, answers, web_argv
from tests.chaos.live.report import RunReport
from tests.chaos.live.supervised_process import Program, SupervisedProcess
from tests.own_valkey import free_port
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.make import TenantAccount

#: The machine does not lose power here, so everything that a killed server has written is in its
#: files after the restart. That has to include every acknowledged write.
POSTGRES_SETTINGS = {"synchronous_commit": "on"}


class SmallInstallation(Installation):
    """Restarts each service as soon as it exits."""

    def __init__(
        self, folder: Path, tenant_account: TenantAccount, report: RunReport, rng: Random
    ) -> None:
        super().__init__(report, rng)
        self.tenant, self.key = tenant_account.slug, tenant_account.admin_key
        self._folder = folder
        self._services: dict[str, SupervisedProcess] = {}
        account = server_account()
        source = urlsplit(os.environ["DATABASE_URL"])
        self._store = ValkeyStore(folder / "valkey", "tests", free_port(), account)
        self._cluster = PostgresCluster(
            folder / "postgres",
            source.password or "",
            free_port(),
            account,
            durable=False,
            settings=POSTGRES_SETTINGS,
        )
        ports = [free_port(), free_port()]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.environment = {
            **os.environ,
            "DATABASE_URL": self._cluster.url.rpartition("/")[0] + source.path,
            "REDIS_URL": self._store.url,
            "RILLBASE_DATA_DIR": str(folder),
        }
        worker = ["-m", "celery", "--app", "rillbase_server.celery", "--quiet", "worker"]
        worker += ["--pool", "solo", "--without-gossip", "--without-mingle"]
        self._application = {
            "web": web_argv(ports[0]),
            "second web": web_argv(ports[1]),
            "background": [sys.executable, "manage.py", "relay", "--port", str(free_port())],
            "grid": [sys.executable, "manage.py", "grid", "--port", str(free_port())],
            "worker": [sys.executable, *worker],
        }

    def pid(self, service: str) -> int:
        return self._services[service].pid

    def valkey(self) -> redis.Redis:
        return redis.Redis.from_url(self._store.url)

    def kill_second_web(self) -> None:
        self._kill(self.pid("second web"))

    def start(self) -> None:
        """Start all services, and return once both app servers answer."""
        self._start_servers()
        for name, argv in self._application.items():
            self._supervise(Program(name, argv, ROOT, self.environment))
        wait_until(lambda: all(map(answers, self.urls)), what="both app servers to answer")

    def _start_servers(self) -> None:
        cluster, store = self._cluster, self._store
        account = cluster.account
        for folder in (cluster.directory, store.directory):
            private_directory(folder, account)
        _copy_cluster(os.environ["RILLBASE_TEST_POSTGRES"], cluster)
        argv, folder = cluster.server_argv(), cluster.directory
        self._supervise(
            Program("postgres", argv, folder, os.environ, account, cluster.before_start)
        )
        argv, folder = store.argv(), store.directory
        self._supervise(Program("valkey", argv, folder, os.environ, account, store.before_start))
        wait_until(store.answers, what="Valkey")
        wait_until(self._postgres_accepts, what="PostgreSQL")

    def _postgres_accepts(self) -> bool:
        try:
            return self._cluster.accepts_connections(self.pid("postgres"))
        except ProcessLookupError:
            return False

    def _supervise(self, program: Program) -> None:
        self._services[program.name] = SupervisedProcess(program, self._folder)

    def _close(self) -> None:
        for service in reversed(self._services.values()):
            service.close()


def _copy_cluster(source_url: str, to: PostgresCluster) -> None:
    """Copy a running server's files, which is much faster than running the migrations."""
    account = to.account
    argv = [str(binary("pg_basebackup")), "--dbname", source_url, "--pgdata", str(to.data)]
    subprocess.run(
        [*argv, "--checkpoint", "fast", "--wal-method", "fetch", "--no-sync"],
        check=True,
        cwd=to.directory,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


@contextmanager
def small_installation(folder: Path, report: RunReport, rng: Random) -> Iterator[Installation]:
    """Start the services that live queries need."""
    # Models can be imported only once Django is set up.
    from tests.make import make_tenant

    installation = SmallInstallation(folder, make_tenant(plan="dedicated"), report, rng)
    try:
        installation.start()
        yield installation
    finally:
        installation.close()
