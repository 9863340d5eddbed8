"""The running installation that is backed up: where its servers and files are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from rillbase_server.backup.problems import BackupProblem
from rillbase_server.launcher.data_directory import DataDirectory
from rillbase_server.launcher.postgres import PostgresCluster
from rillbase_server.launcher.secrets_file import Secrets, load_or_create
from rillbase_server.launcher.status import read_status
from rillbase_server.launcher.storage_node import listening_on


@dataclass(frozen=True)
class RunningInstallation:
    """A running installation."""

    directory: DataDirectory
    database_url: str
    #: None: the installation has no storage node.
    storage_url: str | None

    #: The folder of datasets' files; None: they are in a bucket.
    analytics: Path | None


def running_installation(data_dir: Path) -> RunningInstallation:
    """Return the installation that the launcher runs in this data directory."""
    directory = DataDirectory(data_dir)
    services = {service.name: service for service in read_status(directory).services}
    if not services or not directory.secrets.exists():
        raise BackupProblem(
            f"No Rillbase is running in {data_dir}.",
            "Start it, or specify its --data-dir. A backup is taken while it runs.",
        )
    stored_secrets = load_or_create(directory.secrets, data_exists=True)
    node = services.get("node")
    return RunningInstallation(
        directory,
        os.environ.get("DATABASE_URL") or _embedded_url(directory, stored_secrets),
        os.environ.get("STORAGE_URL") or _node_url(node.pid if node else None, stored_secrets),
        analytics_folder(directory),
    )


def analytics_folder(directory: DataDirectory) -> Path | None:
    """Return the folder of datasets' files, or None if they are in a bucket."""
    setting = os.environ.get("RILLBASE_ANALYTICS_DIR", "")
    if "://" in setting:
        return None
    return Path(setting) if setting else directory.analytics


def _embedded_url(directory: DataDirectory, stored_secrets: Secrets) -> str:
    cluster = PostgresCluster(directory.postgres, stored_secrets.postgres_password, port=0)
    url = cluster.running_url()
    if url is None:
        raise BackupProblem("PostgreSQL is not running.", "Wait until it has started.")
    return url


def _node_url(pid: int | None, stored_secrets: Secrets) -> str | None:
    if pid is None:
        return None
    address = listening_on(psutil.Process(pid))
    return f"redis://admin:{quote(stored_secrets.storage_token, safe='')}@{address}"
