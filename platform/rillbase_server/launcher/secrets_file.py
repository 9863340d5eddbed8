"""The secrets of an installation, created on its first start.

They are in one file that only its owner may read. Without them, the protected data is lost, so a
directory that has data but no secrets is rejected rather than given new ones.
"""

import json
import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Self

from .atomic_file import write_atomically
from .problems import ExitCode, LauncherProblem

SECRET_BYTES = 32


@dataclass(frozen=True)
class DemoCredentials:
    """How to sign in to the demo tenant; fields are empty until it exists."""

    email: str = ""
    password: str = ""
    tenant: str = ""
    api_key: str = ""
    #: Installations from before it have none until the next start.
    publishable_key: str = ""

    def updated(self, answer: object) -> Self:
        """Return these values, updated with the non-empty ones of ``answer``."""
        current = asdict(self)
        if not isinstance(answer, dict):
            return self
        news = {k: v for k, v in answer.items() if k in current and isinstance(v, str) and v}
        return replace(self, **news)


@dataclass(frozen=True)
class Secrets:
    """The content of the file."""

    secret_key: str = field(default_factory=lambda: secrets.token_urlsafe(SECRET_BYTES))
    key_pepper: str = field(default_factory=lambda: secrets.token_urlsafe(SECRET_BYTES))
    postgres_password: str = field(default_factory=lambda: secrets.token_urlsafe(SECRET_BYTES))
    valkey_password: str = field(default_factory=lambda: secrets.token_urlsafe(SECRET_BYTES))
    demo: DemoCredentials = field(default_factory=DemoCredentials)
    storage_token: str = field(default_factory=lambda: secrets.token_urlsafe(SECRET_BYTES))


SECRET_NAMES = frozenset(part.name for part in fields(Secrets)) - {"demo"}
# Secrets added in later releases are created for older installations.
LATER_NAMES = frozenset({"storage_token"})


def load_or_create(path: Path, *, data_exists: bool) -> Secrets:
    """Return the installation's secrets; create them unless it already has data."""
    try:
        # Invalid UTF-8 results in invalid JSON, which is handled below.
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        if data_exists:
            raise LauncherProblem(
                ExitCode.SECRETS_UNUSABLE,
                f"{path} is missing, but {path.parent} contains data that it protects.",
                "Restore the file from a backup, or use a new --data-dir.",
            ) from None
        return save(path, Secrets())
    stored = _parse(path, text)
    return stored if all(name in text for name in LATER_NAMES) else save(path, stored)


def save(path: Path, content: Secrets) -> Secrets:
    """Write the file atomically and durably."""
    write_atomically(path, json.dumps(asdict(content), indent=2) + "\n", durable=True)
    return content


def _parse(path: Path, text: str) -> Secrets:
    damaged = LauncherProblem(
        ExitCode.SECRETS_UNUSABLE,
        f"{path} is damaged.",
        "Restore the file from a backup, or use a new --data-dir.",
    )
    try:
        content = json.loads(text)
    except ValueError:
        raise damaged from None
    if not isinstance(content, dict):
        raise damaged
    demo = DemoCredentials().updated(content.pop("demo", None))
    values = {name: value for name, value in content.items() if isinstance(value, str) and value}
    if values.keys() | LATER_NAMES != SECRET_NAMES:
        raise damaged
    return Secrets(**values, demo=demo)
