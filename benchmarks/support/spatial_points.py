"""Points as real places are: most in towns of different sizes, some anywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
_TOWNS = 2_000
#: The part of the points that is in no town.
_ANYWHERE = 0.05


def clustered(count: int, seed: int) -> Points:
    """Return points in degrees."""
    random = np.random.default_rng(seed)
    towns = np.column_stack((random.uniform(-170, 170, _TOWNS), random.uniform(-55, 70, _TOWNS)))
    sizes = 1 / np.arange(1, _TOWNS + 1)
    chosen = random.choice(_TOWNS, count, p=sizes / sizes.sum())
    radii = random.uniform(0.02, 0.3, _TOWNS)[chosen]
    points = towns[chosen] + random.normal(size=(count, 2)) * radii[:, None]
    anywhere = random.random(count) < _ANYWHERE
    some = int(anywhere.sum())
    uniform = np.column_stack((random.uniform(-180, 180, some), random.uniform(-85, 85, some)))
    points[anywhere] = uniform
    return np.round(np.clip(points, (-180.0, -90.0), (180.0, 90.0)), 6).astype(np.float64)


def half_width(points: Points, center: Points, share: float) -> float:
    """Return half the side of the square around a center that contains this share of the points."""
    distances = np.abs(points - center).max(axis=1)
    rank = min(max(round(share * len(points)), 1), len(points)) - 1
    return float(np.partition(distances, rank)[rank])
