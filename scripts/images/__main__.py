"""Build the images from the release in ``dist/``, and try them: ``python -m scripts.images``.

Each image stays in buildah's store, from which it can be pushed, and is written to ``dist/images/``
as an OCI archive. The archives are then unpacked and started in namespaces, without a container
engine; this needs root and bubblewrap.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.images import build
from scripts.images.images import IMAGES
from scripts.provision import tools
from scripts.provision.places import CHECKOUT, cache
from scripts.provision.problem import SetUpProblem
from scripts.provision.steps import SetupSteps

sys.path.insert(0, str(CHECKOUT / "platform"))

from rillbase_server.version import VERSION


def main() -> int:
    parser = argparse.ArgumentParser(description="Build container images from a release.")
    parser.add_argument("names", nargs="*", choices=[*(image.name for image in IMAGES), []])
    parser.add_argument("--release", type=Path, default=CHECKOUT / "dist")
    parser.add_argument("--registry", default="", help="prefix of the images' names")
    parser.add_argument("--fresh", action="store_true", help="fetch Debian's packages again")
    parser.add_argument("--without-tests", action="store_true", help="only build")
    arguments = parser.parse_args()
    release: Path = arguments.release.absolute()
    steps = SetupSteps(cache() / "logs" / "images.log")
    (release / "images").mkdir(parents=True, exist_ok=True)
    (cache() / "images").mkdir(parents=True, exist_ok=True)
    contexts = Path(tempfile.mkdtemp(prefix="context-", dir=cache() / "images"))
    try:
        installed = tools.install(steps)
        for image in IMAGES:
            if arguments.names and image.name not in arguments.names:
                continue
            build.archive(release, image).unlink(missing_ok=True)
            build.build(
                steps,
                installed,
                image,
                release=release,
                context=contexts / image.name,
                tag=f"{arguments.registry}rillbase/{image.name}:{VERSION}",
                fresh=arguments.fresh,
            )
    except SetUpProblem as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(contexts, ignore_errors=True)
    return 0 if arguments.without_tests or arguments.names else _test(release / "images")


def _test(folder: Path) -> int:
    """Run the tests in a network of their own, where the compose file's ports are free."""
    if os.geteuid() != 0 or shutil.which("bwrap") is None or shutil.which("ip") is None:
        print("Not tested: that needs root, bubblewrap and iproute2.", file=sys.stderr)
        return 1
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    command = [*alone, sys.executable, "-m", "pytest", "-m", "images", "tests/images"]
    return subprocess.run(
        command, cwd=CHECKOUT, env={**os.environ, "RILLBASE_IMAGES": str(folder)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
