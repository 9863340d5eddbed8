"""Assembles the build context of an image from a release's wheels, and builds it with buildah.

buildah needs no daemon. The Containerfiles only copy files: nothing runs in a container.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from scripts.images import root_files
from scripts.images.images import FOLDER, PYTHON_VERSION, ContainerImage
from scripts.provision.places import CHECKOUT, ENVIRONMENT_PYTHON, REQUIREMENTS
from scripts.provision.problem import SetUpProblem
from scripts.provision.steps import SetupSteps, Word
from scripts.provision.tools import Tools
from scripts.release.build import EPOCH

#: pyspark is published as source only; the setup has built its wheel from the same lock file.
_SOURCES = ("--only-binary", ":all:", "--no-binary", "pyspark")


def build(
    steps: SetupSteps,
    tools: Tools,
    image: ContainerImage,
    *,
    release: Path,
    context: Path,
    tag: str,
    fresh: bool,
) -> None:
    """Build an image into buildah's store, and write it as an OCI archive next to the release."""
    if shutil.which("buildah") is None:
        raise SetUpProblem("buildah is not installed; on Debian: apt-get install buildah")
    root = root_files.build(steps, image, fresh=fresh)
    context.mkdir(parents=True)
    os.link(root, context / "root.tar")
    with steps.step(f"Installing the packages of {image.name}"):
        _install(steps, tools, image, release, context / "opt")
    with steps.step(f"Building {tag}"):
        # With one fixed time for all files, a layer does not depend on when it was built.
        options: list[Word] = ["--isolation", "chroot", "--timestamp", EPOCH, "--format", "oci"]
        file: list[Word] = ["--file", image.containerfile, "--tag", tag]
        steps.run(["buildah", "build", *options, *file, context])
        steps.run(
            ["buildah", "push", "--quiet", tag, f"oci-archive:{archive(release, image)}:{tag}"]
        )


def archive(release: Path, image: ContainerImage) -> Path:
    return release / "images" / f"{image.name}.tar"


def _install(
    steps: SetupSteps, tools: Tools, image: ContainerImage, release: Path, target: Path
) -> None:
    packages = target / "rillbase"
    install: list[Word] = [tools.uv, "pip", "install", "--no-config", "--no-deps"]
    install += ["--link-mode", "copy", "--python", ENVIRONMENT_PYTHON, "--target", packages]
    # Which packages of a lock file are needed depends on the image's Python, not on this one.
    install += ["--python-version", PYTHON_VERSION]
    build_constraints: list[Word] = ["--build-constraints", REQUIREMENTS / "build.txt"]
    for lock in image.locks:
        locked: list[Word] = ["--require-hashes", *_SOURCES, *build_constraints]
        steps.run([*install, *locked, "-r", REQUIREMENTS / lock])
    steps.run([*install, "--no-index", *(_wheel(release, pattern) for pattern in image.wheels)])
    (packages / ".lock").unlink(missing_ok=True)
    for program in image.programs:
        shutil.copy2(FOLDER / program, target / program)
    shutil.copy2(CHECKOUT / "LICENSE", target / "LICENSE")
    if image.locks:
        # Python finds the packages even in processes that are started without PYTHONPATH.
        (target.parent / "rillbase.pth").write_text("/opt/rillbase\n")
        # The file system is read-only at run time, so sources cannot change, and need no check.
        compileall: list[Word] = [ENVIRONMENT_PYTHON, "-m", "compileall", "-q"]
        compileall += ["--invalidation-mode", "unchecked-hash", "-s", target, "-p", "/opt"]
        steps.run([*compileall, packages])


def _wheel(release: Path, pattern: str) -> Path:
    found = list(release.glob(pattern))
    if len(found) != 1:
        raise SetUpProblem(f"{release} has no {pattern}: make release ARGS=--without-tests")
    return found[0]
