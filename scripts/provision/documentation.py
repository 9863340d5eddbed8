"""The documentation site, which the server serves at `/docs/`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from scripts import write_site_markdown
from scripts.provision import fingerprint
from scripts.provision.places import CHECKOUT, ENVIRONMENT
from scripts.provision.steps import SetupSteps

SOURCES = CHECKOUT / "docs"
CONFIGURATION = CHECKOUT / "zensical.toml"
BUILT = CHECKOUT / "site"


def sources() -> Iterator[Path]:
    yield from (path for path in SOURCES.rglob("*") if path.is_file())
    yield CONFIGURATION
    yield Path(write_site_markdown.__file__)


def made_from() -> str:
    return fingerprint.of_files(sources(), root=CHECKOUT)


def is_built() -> bool:
    return (BUILT / "llms.txt").exists()


def install(steps: SetupSteps) -> None:
    """Build the site.

    A broken link does not stop the setup; `make docs` reports it.
    """
    with steps.step("Building the documentation"):
        # The generator writes to the folder of its configuration, so it builds a copy.
        partial = BUILT.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(SOURCES, partial / SOURCES.name)
        configuration = shutil.copy(CONFIGURATION, partial)
        steps.run([ENVIRONMENT / "bin" / "zensical", "build", "--config-file", configuration])
        write_site_markdown.write(partial / BUILT.name, write_site_markdown.pages(partial))
        shutil.rmtree(BUILT, ignore_errors=True)
        (partial / BUILT.name).rename(BUILT)
        shutil.rmtree(partial)
