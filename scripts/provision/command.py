"""Sets up the checkout if anything has changed since the last time."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from scripts.provision import (
    console,
    documentation,
    javascript,
    native_module,
    packages,
    prerequisites,
    tools,
    web_browser,
)
from scripts.provision.packages import Profile
from scripts.provision.places import ENVIRONMENT, cache
from scripts.provision.problem import SetUpProblem
from scripts.provision.stamp import InstallStamp
from scripts.provision.steps import SetupSteps

EXIT_INTERRUPTED = 130


def main() -> int:
    """Return the exit status."""
    arguments = _arguments()
    try:
        if arguments.doctor:
            return _doctor()
        _set_up(_effective(arguments.profile))
    except SetUpProblem as problem:
        print(f"Setup stopped: {problem}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"Setup stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nSetup interrupted; start it again to continue.", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="setup", description="Set up the checkout.")
    parser.add_argument(
        "--profile",
        choices=["runtime", "dev"],
        default="dev",
        help="what to install: only what running needs, or also what development needs",
    )
    parser.add_argument(
        "--doctor", action="store_true", help="only report what is installed and what is missing"
    )
    return parser.parse_args()


def _effective(profile: Profile) -> Profile:
    """A development environment can also run Rillbase, so it is kept."""
    present = InstallStamp.read()
    return "dev" if present and present.profile == "dev" else profile


def _set_up(profile: Profile) -> None:
    if _is_done(profile):
        return
    with _setup_lock():
        # The previous holder of the lock may have finished the setup.
        if _is_done(profile):
            return
        prerequisites.demand()
        steps = SetupSteps(cache() / "logs" / f"setup-{os.getpid()}.log")
        _install(steps, profile)
        steps.log.unlink()


def _is_done(profile: Profile) -> bool:
    done = InstallStamp.read() == InstallStamp.wanted(profile)
    built = javascript.is_built() and console.is_built() and documentation.is_built()
    installed = native_module.is_installed() and built
    usable = packages.environment_works() and packages.is_linked() and packages.are_compiled()
    return done and usable and installed


def _install(steps: SetupSteps, profile: Profile) -> None:
    current, present = InstallStamp.wanted(profile), InstallStamp.read()
    if present is not None and present.checkout != current.checkout:
        shutil.rmtree(ENVIRONMENT)
        present = None
    installed = tools.install(steps)
    packages_fit = (
        present is not None
        and (present.profile, present.packages) == (current.profile, current.packages)
        and packages.environment_works()
        and packages.are_compiled()
    )
    if not packages_fit:
        packages.install(steps, installed, profile)
        # The installation removed packages that no lock file names, including the native module.
        replace(current, native="", javascript="", console="", documentation="").write()
    packages.link()
    native_fits = present is not None and present.native == current.native
    if not (packages_fit and native_fits and native_module.is_installed()):
        native_module.install(steps, installed)
        replace(current, javascript="", console="", documentation="").write()
    javascript_fits = present is not None and present.javascript == current.javascript
    if not (packages_fit and javascript_fits and javascript.is_built()):
        javascript.install(steps)
    console_fits = present is not None and present.console == current.console
    if not (packages_fit and console_fits and console.is_built()):
        console.install(steps)
    documentation_fits = present is not None and present.documentation == current.documentation
    if not (packages_fit and documentation_fits and documentation.is_built()):
        replace(current, documentation="").write()
        documentation.install(steps)
    if current.browser and not (present is not None and present.browser):
        web_browser.install(steps)
    current.write()


@contextmanager
def _setup_lock() -> Iterator[None]:
    """Hold the cache's lock, because checkouts share the tools and the build folder."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "setup.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("… Waiting for another setup to finish", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _doctor() -> int:
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"✓ {'Python 3.11+':15} {version:10} {tools.base_python()}")
    good = prerequisites.report()
    profile = _effective("runtime")
    if _is_done(profile):
        print(f"✓ The checkout is set up ({profile}).")
    else:
        print("· The checkout is not set up, or its lock files or native sources have changed.")
    print(f"· Cache: {cache()}")
    return 0 if good else 1
