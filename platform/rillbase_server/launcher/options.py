"""The options of ``up``."""

import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PORT = 8080
DEFAULT_HOST = "127.0.0.1"
REPOSITORY = Path(__file__).resolve().parents[3]


def default_data_dir() -> Path:
    """Return the default data directory."""
    return Path(os.environ.get("RILLBASE_DATA_DIR") or REPOSITORY / ".rillbase")


@dataclass(frozen=True)
class UpOptions:
    """The options of ``manage.py up``."""

    data_dir: Path
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    ready_file: Path | None = None
    workers: int = 1
    demo: bool = True
    verbose: bool = False

    @property
    def makes_demo(self) -> bool:
        """Whether to create a demo tenant, never in production: its user belongs to the staff."""
        return self.demo and os.environ.get("RILLBASE_ENV") != "production"

    @property
    def url(self) -> str:
        """The server's URL on this machine."""
        anywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound
        host = anywhere.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
