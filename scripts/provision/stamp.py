"""The inputs that the environment was built from, recorded inside it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from scripts.provision import console, documentation, javascript, native_module, packages
from scripts.provision.packages import Profile
from scripts.provision.places import CHECKOUT, ENVIRONMENT

FILE = ENVIRONMENT / "rillbase-setup.json"


@dataclass(frozen=True, slots=True)
class InstallStamp:
    """Fingerprints of the installed parts; `""` for a part that has not been installed yet."""

    profile: Profile
    packages: str
    native: str
    javascript: str
    checkout: str
    """An environment cannot be moved: its programs contain the interpreter's path."""
    console: str = ""
    """Older setups did not record it."""
    documentation: str = ""
    """Older setups did not record it."""
    browser: bool = False
    """Whether the setup has looked for a browser, and installed one if it could."""

    @classmethod
    def wanted(cls, profile: Profile) -> Self:
        made_from = packages.made_from(profile)
        return cls(
            profile,
            made_from,
            native_module.made_from(),
            javascript.made_from(),
            str(CHECKOUT),
            console.made_from(),
            documentation.made_from(),
            browser=profile == "dev",
        )

    @classmethod
    def read(cls) -> Self | None:
        try:
            return cls(**json.loads(FILE.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self) -> None:
        FILE.write_text(json.dumps(asdict(self)))
