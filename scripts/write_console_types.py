"""Write console/src/api/types.ts, the console's types, from the OpenAPI document.

python -m scripts.write_console_types [--check]

Neither a server nor a network is needed: the document comes from the code, and the generator is one
of the console's development packages. With `--check` nothing is written, and the exit status shows
whether the file is up to date.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
CONSOLE = ROOT / "console"
TYPES = CONSOLE / "src/api/types.ts"
HEAD = "/** Generated from the OpenAPI document by `python -m scripts.write_console_types`. */\n\n"
OPTIONS = (
    "--immutable",
    "--empty-objects-unknown",
    "--root-types",
    "--root-types-no-schema-prefix",
)
#: The suffix by which the document distinguishes a schema from a request's or a field's.
SUFFIXES = ("Answer", "Enum")
REFERENCE = re.compile(r'"#/components/schemas/(\w+)"')

Document: TypeAlias = dict[str, object]


def document() -> Document:
    """Return the schemas of the OpenAPI document, under the names that the console uses."""
    from rillbase_server.pages import openapi_document  # noqa: PLC0415 -- needs Django's setup

    whole = json.loads(openapi_document())
    schemas = whole["components"]["schemas"]
    names = short_names(set(schemas))
    renamed = REFERENCE.sub(
        lambda reference: f'"#/components/schemas/{names[reference[1]]}"',
        json.dumps({names[name]: schema for name, schema in schemas.items()}),
    )
    components = {"schemas": json.loads(renamed)}
    return {"openapi": "3.1.0", "info": whole["info"], "paths": {}, "components": components}


def short_names(names: set[str]) -> dict[str, str]:
    """Drop the suffixes of names where no other schema has the name that remains."""
    short: dict[str, str] = {}
    for name in sorted(names):
        stem = next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name)
        is_free = stem not in names and stem not in short.values()
        short[name] = stem if is_free else name
    return short


def types() -> str:
    """Return the file's text."""
    tools = CONSOLE / "node_modules/.bin"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "types.ts")
        source.write_text(json.dumps(document()))
        generate: list[str | Path] = [tools / "openapi-typescript", source, *OPTIONS]
        generate += ["--output", target]
        subprocess.run(generate, cwd=CONSOLE, check=True, capture_output=True)
        generated = target.read_text()
    form = [str(tools / "biome"), "format", f"--stdin-file-path={TYPES.relative_to(CONSOLE)}"]
    formatted = subprocess.run(
        form, cwd=CONSOLE, check=True, capture_output=True, text=True, input=HEAD + generated
    )
    return formatted.stdout


def main() -> int:
    """Write the file, or report whether it is up to date."""
    os.environ.setdefault("RILLBASE_ENV", "test")
    os.environ.setdefault("DATABASE_URL", "postgresql://unused.invalid/unused")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rillbase_server.settings")
    sys.path.insert(0, str(ROOT / "platform"))
    import django  # noqa: PLC0415 -- reads what is set above

    django.setup()
    generated = types()
    if "--check" not in sys.argv[1:]:
        TYPES.write_text(generated)
    elif TYPES.read_text() != generated:
        name = TYPES.relative_to(ROOT)
        sys.stderr.write(f"{name} is out of date: run python -m scripts.write_console_types\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
