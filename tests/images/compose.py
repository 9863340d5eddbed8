"""The compose file: its services, with the variables of an `.env` file in place."""

from __future__ import annotations

import re
from typing import Any

import yaml

from scripts.provision.places import CHECKOUT

FILE = CHECKOUT / "compose.yaml"
SECRETS = {
    "POSTGRES_PASSWORD": "postgres-password",
    "RILLBASE_SECRET_KEY": "s" * 48,
    "RILLBASE_KEY_PEPPER": "p" * 48,
    "STORAGE_TOKEN": "t" * 48,
}
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*)|:\?[^}]*)?\}")


def interpolated(text: str) -> str:
    """Replace variables by secrets or defaults; a variable with neither is an error."""

    def value(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        return SECRETS[name] if default is None else default

    return _VARIABLE.sub(value, text)


def services() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(interpolated(FILE.read_text()))["services"]
    return loaded
