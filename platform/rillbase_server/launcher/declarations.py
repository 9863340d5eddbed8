"""Declares all services that the launcher runs. A new one is another function here.

Shutdown ranks: services that accept work stop first, those that store data last.
"""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_urlsafe

from rillbase_server.processes.table import BACKGROUND, GRID_PROCESS, ProcessDeclaration
from rillbase_server.web_process import ENVIRONMENT, web_argv

from .account import server_account
from .child import server_environment
from .child_environment import own_environment, with_administration
from .data_directory import DataDirectory
from .demo_login import write_key
from .leftovers import mark_of
from .lifecycle import RestartPolicy
from .liveness_file import liveness_path
from .options import REPOSITORY, UpOptions
from .ports import LOOPBACK, free_port
from .postgres import TRANSIENT_FAILURES as POSTGRES_TRANSIENT_FAILURES
from .postgres import PostgresCluster
from .readiness import (
    file_renewed,
    http_answers,
    http_condition,
    mark_written,
    postgres_accepts,
    postgres_responds,
    valkey_answers,
    valkey_pings,
    web_ready,
)
from .secrets_file import Secrets
from .service import ServiceSpec
from .storage_node import TRANSIENT_FAILURES as NODE_TRANSIENT_FAILURES
from .storage_node import StorageNodeProgram
from .valkey import TRANSIENT_FAILURES as VALKEY_TRANSIENT_FAILURES
from .valkey import ValkeyStore

WEB_RANK, TASKS_RANK, PREPARATION_RANK, STORAGE_RANK, VALKEY_RANK, POSTGRES_RANK = range(6)
WORKER_PROCESSES = 2
METRICS_TOKEN = "RILLBASE_METRICS_TOKEN"
# uvicorn waits this long for open connections; the launcher waits a little longer for uvicorn.
CONNECTIONS_GRACE_S = 8
WEB_GRACE_S = 12.0
# Time for running tasks to finish; Celery redelivers interrupted ones.
WORKER_GRACE_S = 20.0
PREPARATION_DEADLINE_S = 600.0
# Crash recovery, or loading a long append-only file, takes a while.
RECOVERY_DEADLINE_S = 120.0
# For Python programs on a loaded machine.
PROGRAM_DEADLINE_S = 180.0
# Spark takes ten to thirty seconds, then the nodes read the documents.
GRID_DEADLINE_S = 180.0
GRID_GRACE_S = 15.0
# An interrupted pipeline stage is repeated.
BACKGROUND_GRACE_S = 15.0
SERVER_POLICY = RestartPolicy(start_deadline_s=RECOVERY_DEADLINE_S, first_delay_s=0.2)


@dataclass(frozen=True)
class LaunchPlan:
    """Common parameters of the declarations of our own processes."""

    options: UpOptions
    directory: DataDirectory
    database_url: str
    environment: Mapping[str, str]
    temporary: Mapping[str, str]
    after: tuple[str, ...] = ()


def declare(
    options: UpOptions,
    directory: DataDirectory,
    secrets: Secrets,
    temporary: Mapping[str, str],
) -> list[ServiceSpec]:
    """Return the services of one start, with embedded servers for those without a URL; `temporary`
    is the variable that names the folder for temporary files.
    """
    account = server_account()
    ports = _free_ports(6, avoid=options.port)
    cluster = PostgresCluster(directory.postgres, secrets.postgres_password, ports[0], account)
    store = ValkeyStore(directory.valkey, secrets.valkey_password, ports[1], account)
    node = StorageNodeProgram(directory.node, secrets.storage_token, ports[2], ports[3], account)
    embedded = {"DATABASE_URL": cluster.url, "REDIS_URL": store.url, "STORAGE_URL": node.url}
    urls = {name: os.environ.get(name) or url for name, url in embedded.items()}
    is_ours = {name: urls[name] == url for name, url in embedded.items()}
    postgres = _postgres(cluster, directory) if is_ours["DATABASE_URL"] else []
    valkey = [_valkey(store, directory)] if is_ours["REDIS_URL"] else []
    # Nothing waits for it: documents work without it.
    storage = [_node(node, directory)] if is_ours["STORAGE_URL"] else []

    environment = own_environment(options, secrets, urls) | mark_of(directory) | dict(temporary)
    plan = LaunchPlan(options, directory, urls["DATABASE_URL"], environment, temporary)
    preparation = _preparation(replace(plan, after=_names(postgres)))
    plan = replace(plan, after=_names([preparation, *valkey]))
    own_services = [_web(plan), _worker(plan), _background(plan, ports[4])]
    # Last, so Spark does not compete for CPU time with services that the user waits for.
    grid = _grid(replace(plan, after=(*plan.after, *_names(own_services))), ports[5])
    demo = _demo(replace(plan, after=(*plan.after, *_names(own_services))))
    return [*postgres, *valkey, *storage, preparation, *own_services, grid, *demo]


def _free_ports(count: int, avoid: int) -> list[int]:
    ports: list[int] = []
    for _ in range(count):
        ports.append(free_port(avoid={avoid, *ports}))
    return ports


def _postgres(cluster: PostgresCluster, directory: DataDirectory) -> list[ServiceSpec]:
    server = ServiceSpec(
        name="postgres",
        argv=tuple(cluster.server_argv()),
        cwd=directory.root,
        env=server_environment() | mark_of(directory),
        check=postgres_accepts(cluster),
        alive=postgres_responds(cluster.port),
        policy=replace(SERVER_POLICY, stop_grace_s=20.0),
        stop_rank=POSTGRES_RANK,
        stop_signal=signal.SIGINT,  # PostgreSQL's fast shutdown
        account=cluster.account,
        before_start=cluster.before_start,
        transient_failures=POSTGRES_TRANSIENT_FAILURES,
    )
    if cluster.initialised:
        return [server]
    initdb = ServiceSpec(
        name="initdb",
        argv=tuple(cluster.initdb_argv()),
        cwd=directory.root,
        env=server.env,
        policy=RestartPolicy(one_shot=True, start_deadline_s=RECOVERY_DEADLINE_S),
        stop_rank=POSTGRES_RANK,
        account=cluster.account,
        before_start=cluster.before_initdb,
    )
    return [initdb, replace(server, after=(initdb.name,))]


def _valkey(store: ValkeyStore, directory: DataDirectory) -> ServiceSpec:
    return ServiceSpec(
        name="valkey",
        argv=tuple(store.argv()),
        cwd=directory.root,
        env=server_environment() | mark_of(directory),
        check=valkey_answers(store),
        essential=False,
        alive=valkey_pings(store),
        policy=SERVER_POLICY,
        stop_rank=VALKEY_RANK,
        account=store.account,
        before_start=store.before_start,
        repair=store.quarantine_damaged_data,
        transient_failures=VALKEY_TRANSIENT_FAILURES,
    )


def _node(node: StorageNodeProgram, directory: DataDirectory) -> ServiceSpec:
    return ServiceSpec(
        name="node",
        argv=tuple(node.argv()),
        cwd=directory.root,
        env=server_environment() | node.environment | mark_of(directory),
        check=web_ready(node.health_url),
        awaited=False,
        essential=False,
        alive=http_answers(node.health_url),
        policy=SERVER_POLICY,
        stop_rank=STORAGE_RANK,
        account=node.account,
        before_start=node.before_start,
        transient_failures=NODE_TRANSIENT_FAILURES,
    )


def _preparation(plan: LaunchPlan) -> ServiceSpec:
    argv = [sys.executable, str(REPOSITORY / "manage.py"), "prepare_database"]
    if plan.options.creates_demo:
        argv += ["--demo-json", str(plan.directory.demo)]
    return ServiceSpec(
        name="prepare",
        argv=tuple(argv),
        cwd=REPOSITORY,
        env=with_administration(plan.environment, plan.database_url),
        after=plan.after,
        policy=RestartPolicy(one_shot=True, start_deadline_s=PREPARATION_DEADLINE_S),
        stop_rank=PREPARATION_RANK,
    )


def _web(plan: LaunchPlan) -> ServiceSpec:
    options = plan.options
    argv = web_argv(
        options.host, options.port, workers=options.workers, grace_s=CONNECTIONS_GRACE_S
    )
    return ServiceSpec(
        name="web",
        argv=tuple(argv),
        cwd=REPOSITORY,
        env={**plan.environment, **ENVIRONMENT},
        after=plan.after,
        check=web_ready(options.url),
        alive=http_answers(options.url),
        condition=http_condition(options.url),
        policy=RestartPolicy(start_deadline_s=PROGRAM_DEADLINE_S, stop_grace_s=WEB_GRACE_S),
        # Loading the program takes most of a restart. With several workers, the others serve.
        has_standby=options.workers == 1,
        stop_rank=WEB_RANK,
    )


def _worker(plan: LaunchPlan) -> ServiceSpec:
    mark = plan.directory.run / "worker.ready"
    argv = [sys.executable, "-m", f"{__package__}.celery_process", str(mark), "worker"]
    argv += ["--pool", "prefork", "--concurrency", str(WORKER_PROCESSES)]
    argv += ["--without-gossip", "--without-mingle"]
    return ServiceSpec(
        name="worker",
        argv=tuple(argv),
        cwd=REPOSITORY,
        env=plan.environment,
        after=plan.after,
        check=mark_written(mark),
        essential=False,
        alive=file_renewed(liveness_path(mark)),
        policy=RestartPolicy(start_deadline_s=PROGRAM_DEADLINE_S, stop_grace_s=WORKER_GRACE_S),
        stop_rank=TASKS_RANK,
        before_start=partial(mark.unlink, missing_ok=True),
    )


def _background(plan: LaunchPlan, port: int) -> ServiceSpec:
    return _process(
        plan,
        BACKGROUND,
        port,
        RestartPolicy(start_deadline_s=PROGRAM_DEADLINE_S, stop_grace_s=BACKGROUND_GRACE_S),
        TASKS_RANK,
    )


def _demo(plan: LaunchPlan) -> list[ServiceSpec]:
    """Return the clients that keep the demo tenant busy. They use the public API alone."""
    if not plan.options.creates_demo or not (REPOSITORY / "examples" / "demo").is_dir():
        return []
    key, mark = plan.directory.run / "demo.key", plan.directory.run / "demo.ready"
    argv = (sys.executable, "-m", "examples.demo", "--url", plan.options.url)

    def prepare() -> None:
        write_key(plan.directory, key)
        mark.unlink(missing_ok=True)

    service = ServiceSpec(
        name="demo",
        argv=(*argv, "--key-file", str(key), "--ready-file", str(mark)),
        cwd=REPOSITORY,
        env=server_environment() | mark_of(plan.directory) | dict(plan.temporary),
        after=plan.after,
        check=mark_written(mark),
        awaited=False,
        essential=False,
        policy=RestartPolicy(start_deadline_s=PROGRAM_DEADLINE_S),
        stop_rank=WEB_RANK,
        before_start=prepare,
    )
    return [service]


def _grid(plan: LaunchPlan, port: int) -> ServiceSpec:
    policy = RestartPolicy(start_deadline_s=GRID_DEADLINE_S, stop_grace_s=GRID_GRACE_S)
    return _process(plan, GRID_PROCESS, port, policy, WEB_RANK)


def _process(
    plan: LaunchPlan, process: ProcessDeclaration, port: int, policy: RestartPolicy, stop_rank: int
) -> ServiceSpec:
    """Return the service of a process of the table, which reports its state on its own port."""
    url = f"http://{LOOPBACK}:{port}"
    # Every account of the machine can reach the port.
    token = plan.environment.get(METRICS_TOKEN) or token_urlsafe()
    return ServiceSpec(
        name=process.name,
        argv=(sys.executable, str(REPOSITORY / "manage.py"), process.name, "--port", str(port)),
        cwd=REPOSITORY,
        env={**plan.environment, METRICS_TOKEN: token},
        after=plan.after,
        check=web_ready(url),
        alive=http_answers(url),
        condition=http_condition(url, token),
        awaited=any(service.awaited for service in process.services),
        essential=False,
        policy=policy,
        stop_rank=stop_rank,
    )


def _names(services: list[ServiceSpec]) -> tuple[str, ...]:
    return tuple(service.name for service in services)
