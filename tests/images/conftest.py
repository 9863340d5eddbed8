"""The images that `make images` has built, unpacked once for the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.images.unpacked import UnpackedImage, unpack
from tests.launcher_command import reachable_directory

GetImage = Callable[[str], UnpackedImage]


@pytest.fixture(scope="session")
def machine() -> Iterator[Path]:
    """A folder that the images' account can reach."""
    with reachable_directory() as folder:
        yield folder


@pytest.fixture(scope="session")
def image(machine: Path) -> GetImage:
    folder = os.environ.get("RILLBASE_IMAGES")
    if not folder:
        pytest.skip("RILLBASE_IMAGES does not say where the images are: make images")
    if os.geteuid() != 0:
        pytest.skip("only root can unpack files of other users")

    @cache
    def unpacked(name: str) -> UnpackedImage:
        root = machine / "images" / name
        root.mkdir(parents=True)
        return unpack(Path(folder) / f"{name}.tar", root)

    return unpacked
