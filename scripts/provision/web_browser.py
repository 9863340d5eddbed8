"""Chromium for the tests of the console, the documentation and the SDK in a browser.

It comes from Debian's packages. Only root can install those; everybody else is shown the command.
Only those tests need it, so a failed installation does not fail the setup.
"""

from __future__ import annotations

import os
import shutil

from scripts.provision.problem import SetUpProblem
from scripts.provision.steps import SetupSteps

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Without a font of its own, a page is laid out with whatever fonts the machine has.
PACKAGES = ("chromium", "fonts-liberation")
COMMAND = f"sudo apt-get install --no-install-recommends {' '.join(PACKAGES)}"
UNATTENDED = {"DEBIAN_FRONTEND": "noninteractive"}


def find() -> str | None:
    """Return the browser's path, or None if the machine has none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


def install(steps: SetupSteps) -> None:
    """Install the browser if that is possible, otherwise print how to."""
    if find():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"· Chromium is missing, and tests that need it are skipped: {COMMAND}")
        return
    try:
        with steps.step("Installing Chromium for the tests"):
            steps.run(["apt-get", "update"], **UNATTENDED)
            install = ["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES]
            steps.run(install, **UNATTENDED)
    except SetUpProblem as problem:
        print(f"· {problem}\n  Tests that need Chromium are skipped.", flush=True)
