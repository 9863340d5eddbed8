"""The options of ``up``."""

import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PORT = 8080
DEFAULT_HOST = "127.0.0.1"
REPOSITORY = Path(__file__).resolve().parents[3]
#: Whether this is the installed package instead of a checkout; see `rillbase_bundle`.
INSTALLED = REPOSITORY.parent.name == "rillbase_bundle"
#: The program's name, and how users call it.
NAME = "rillbase-server" if INSTALLED else "manage.py"
PROGRAM = NAME if INSTALLED else f".venv/bin/python {NAME}"
SYSTEM_DATA_DIR = Path("/var/lib/rillbase")


def default_data_dir() -> Path:
    """Return the default data directory: in the checkout, or where the system has such files."""
    chosen = os.environ.get("RILLBASE_DATA_DIR")
    if chosen:
        return Path(chosen)
    return user_data_dir() if INSTALLED else REPOSITORY / ".rillbase"


def user_data_dir() -> Path:
    """Return the caller's directory for data, or the system's for root."""
    if os.geteuid() == 0:
        return SYSTEM_DATA_DIR
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "rillbase"


@dataclass(frozen=True)
class UpOptions:
    """The options of ``up``."""

    data_dir: Path
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    ready_file: Path | None = None
    workers: int = 1
    demo: bool = True
    verbose: bool = False

    @property
    def creates_demo(self) -> bool:
        """Whether to create a demo tenant, never in production: its user belongs to the staff."""
        return self.demo and os.environ.get("RILLBASE_ENV") != "production"

    @property
    def url(self) -> str:
        """The server's URL on this machine."""
        anywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound
        host = anywhere.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
