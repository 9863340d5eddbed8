"""Write docs/operations/settings.md from the settings themselves.

python -m scripts.write_settings_doc
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from foundation.environment import Environment

PAGE = Path(__file__).resolve().parent.parent / "docs/operations/settings.md"

HEAD = """\
# Settings

Every setting is an environment variable, read once at start and checked before anything else
happens. `RILLBASE_SETTINGS_DIR` may name a folder with files of the same names, such as a mounted
secret; where there is both, the variable counts. This page is written by
`python -m scripts.write_settings_doc`; change the description in `foundation/environment.py`.

With `RILLBASE_ENV=production` the server refuses to start with development secrets, with
`RILLBASE_DEBUG`, with wildcard hosts, without `https://` in `RILLBASE_PUBLIC_URL`, with the whole
internet as trusted proxies, with loopback targets allowed, or with mails that only go to the log.

| variable | type | default | meaning |
|---|---|---|---|
"""


def page() -> str:
    """Return the page's text."""
    return HEAD + "".join(
        f"| `{name.upper()}` | {_type(field)} | {_default(field)} | {_words(field)} |\n"
        for name, field in Environment.model_fields.items()
    )


def _type(field: FieldInfo) -> str:
    kind = field.annotation
    if get_origin(kind) is Literal:
        return " \\| ".join(f"`{choice}`" for choice in get_args(kind))
    if kind is SecretStr:
        return "secret"
    if get_origin(kind) is list:
        return "list, by commas"
    return {bool: "yes or no", int: "whole number", float: "number", str: "text", Path: "path"}.get(
        kind if isinstance(kind, type) else str, "text"
    )


def _default(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, SecretStr):
        return "a development secret" if value.get_secret_value() else "empty"
    if isinstance(value, list):
        return ", ".join(f"`{part}`" for part in value) or "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if str(value) else "empty"


def _words(field: FieldInfo) -> str:
    return (field.description or "").replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(PAGE.write_text(page()) == 0)
