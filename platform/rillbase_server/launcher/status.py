"""``manage.py status``: what is running, checked against the processes themselves. The state file
has the launcher's last record; pids and start times show the current state.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from .data_directory import DataDirectory
from .instance_lock import lock_holder
from .problems import ExitCode
from .process import ProcessIdentity, family, memory_bytes
from .state_file import InstanceRecord, ServiceRecord, read_state

MIB = 1024 * 1024
GONE = "gone"
LAUNCHER = "launcher"


@dataclass(frozen=True)
class ServiceStatus:
    """One line of the table."""

    name: str
    state: str
    pid: int | None
    uptime_s: float | None
    restarts: int
    memory_bytes: int
    reason: str
    repair: str = ""
    condition: str = ""


@dataclass(frozen=True)
class Status:
    """One data directory's instance."""

    running: bool
    data_dir: str
    url: str
    services: tuple[ServiceStatus, ...]
    #: Because the disk is nearly full.
    writes_stopped: bool = False

    @property
    def memory_bytes(self) -> int:
        """The memory of all processes, with shared memory counted once."""
        return sum(service.memory_bytes for service in self.services)


def status(data_dir: Path, *, as_json: bool) -> ExitCode:
    """Print the table, or the same as JSON for scripts."""
    current = read_status(DataDirectory(data_dir))
    if as_json:
        content = asdict(current) | {"memory_bytes": current.memory_bytes}
        sys.stdout.write(json.dumps(content) + "\n")
    else:
        _print(current)
    return ExitCode.OK if current.running else ExitCode.NOT_RUNNING


def read_status(directory: DataDirectory) -> Status:
    """Return the status of ``directory``."""
    launcher = lock_holder(directory.lock)
    record = read_state(directory.state) or InstanceRecord("", "", ())
    services = [_service(service, record) for service in record.services]
    if launcher is None:
        services = [service for service in services if service.pid is not None]
    else:
        services = [_launcher(launcher), *services]
    return Status(
        running=launcher is not None,
        data_dir=str(directory.root),
        url=record.url if launcher else "",
        services=tuple(services),
        writes_stopped=launcher is not None and directory.write_stop.exists(),
    )


def _service(record: ServiceRecord, instance: InstanceRecord) -> ServiceStatus:
    identity = record.identity if instance.this_boot else None
    alive = identity is not None and identity.is_running
    state = record.state
    if record.pid is not None and not alive:
        state = GONE
    return ServiceStatus(
        name=record.name,
        state=state,
        pid=record.pid if alive else None,
        uptime_s=_uptime_s(identity) if identity else None,
        restarts=record.restarts,
        memory_bytes=memory_bytes(family(identity)) if identity else 0,
        reason=record.reason,
        repair=record.repair,
        condition=record.condition if alive else "",
    )


def _launcher(identity: ProcessIdentity) -> ServiceStatus:
    process = identity.process()
    return ServiceStatus(
        name=LAUNCHER,
        state="running",
        pid=identity.pid,
        uptime_s=_uptime_s(identity),
        restarts=0,
        memory_bytes=memory_bytes([process] if process else []),
        reason="",
    )


def _uptime_s(identity: ProcessIdentity) -> float | None:
    process = identity.process()
    try:
        return max(0.0, time.time() - process.create_time()) if process else None
    except psutil.Error:
        return None


def _print(current: Status) -> None:
    console = Console(highlight=False)
    if not current.running:
        console.print(f"Rillbase is not running in {current.data_dir}.", soft_wrap=True)
        if current.services:
            console.print("Left over from a launcher that was killed (the next start stops them):")
    else:
        console.print(f"Rillbase is running at {current.url} in {current.data_dir}", soft_wrap=True)
    if current.writes_stopped:
        console.print("The disk is nearly full: writes are rejected until space is freed.")
    if current.services:
        console.print(_table(current))
    for service in current.services:
        if service.repair:
            console.print(f"{service.name}: {service.repair}.", soft_wrap=True)
        if service.condition:
            console.print(f"{service.name}: {service.condition}", soft_wrap=True)


def _table(current: Status) -> Table:
    table = Table(box=None, pad_edge=False, show_footer=True, header_style="bold")
    table.add_column("service", "all")
    table.add_column("state")
    table.add_column("pid", justify="right")
    table.add_column("uptime", justify="right")
    table.add_column("restarts", justify="right")
    table.add_column("memory", _mib(current.memory_bytes), justify="right")
    for service in current.services:
        pid = "" if service.pid is None else str(service.pid)
        uptime = "" if service.uptime_s is None else _duration(service.uptime_s)
        memory = _mib(service.memory_bytes) if service.pid is not None else ""
        table.add_row(
            service.name, _shown_state(service), pid, uptime, str(service.restarts), memory
        )
    return table


def _shown_state(service: ServiceStatus) -> str:
    return "degraded" if service.condition else service.state


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:.0f} MiB"


def _duration(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour} h"
    if hours:
        return f"{hours} h {minute} min"
    return f"{minutes} min {second} s" if minutes else f"{second} s"
