"""``run/state.json``: the running services, for ``manage.py status`` and restarts."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from .atomic_file import write_atomically
from .process import ProcessIdentity, boot_id


@dataclass(frozen=True)
class ServiceRecord:
    """One service. ``since`` is in seconds since the epoch."""

    name: str
    state: str
    since: float
    restarts: int
    stop_rank: int
    stop_signal: int
    log: str
    pid: int | None = None
    started: int | None = None
    reason: str = ""
    # What was repaired when it was started.
    repair: str = ""
    condition: str = ""

    @property
    def identity(self) -> ProcessIdentity | None:
        """The identity of the process, if it was known when the record was written."""
        if self.pid is None or self.started is None:
            return None
        return ProcessIdentity(self.pid, self.started)


@dataclass(frozen=True)
class InstanceRecord:
    """One run of the launcher."""

    url: str
    boot_id: str
    services: tuple[ServiceRecord, ...]

    @property
    def this_boot(self) -> bool:
        """Whether the record is from this boot, so its processes may still be running."""
        return self.boot_id == boot_id()


def write_state(path: Path, record: InstanceRecord) -> None:
    """Replace the file. It is not synced, since it is meaningless after a reboot."""
    write_atomically(path, json.dumps(asdict(record), indent=2) + "\n")


def read_state(path: Path) -> InstanceRecord | None:
    """Return the last record, or None if there is no valid one."""
    try:
        content = json.loads(path.read_text())
        services = tuple(ServiceRecord(**service) for service in content["services"])
        return InstanceRecord(content["url"], content["boot_id"], services)
    except (OSError, ValueError, KeyError, TypeError):
        return None
