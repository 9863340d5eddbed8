"""A city of streets, a river and parks, in metres east and north of its centre."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

Point = tuple[float, float]

#: The location of its centre on Earth.
LON, LAT = 16.3731, 48.2085
METRES_PER_DEGREE = 111_320.0
WIDTH_M, HEIGHT_M = 3_600.0, 2_100.0
RIVER_M = 70.0


def on_earth(point: Point) -> tuple[float, float]:
    """Return longitude and latitude."""
    x, y = point
    lon = LON + x / (METRES_PER_DEGREE * math.cos(math.radians(LAT)))
    return round(lon, 7), round(LAT + y / METRES_PER_DEGREE, 7)


def in_city(lon: float, lat: float) -> Point:
    """Return metres east and north of the centre."""
    east = (lon - LON) * METRES_PER_DEGREE * math.cos(math.radians(LAT))
    return east, (lat - LAT) * METRES_PER_DEGREE


def river(x: float) -> float:
    """Return how far north the river is."""
    return 330 * math.sin(x / 900) - 160 + x / 14


@dataclass
class City:
    """Streets that run from edge to edge, at uneven distances."""

    #: Metres east of the centre, for each street that runs north.
    columns: list[float] = field(default_factory=list)
    #: Metres north of the centre, for each street that runs east.
    rows: list[float] = field(default_factory=list)
    #: West, south, east, north.
    parks: list[tuple[float, float, float, float]] = field(default_factory=list)

    @classmethod
    def built(cls, rng: random.Random) -> City:
        columns = _spread(WIDTH_M, 11, rng)
        rows = _spread(HEIGHT_M, 7, rng)
        parks = [
            (columns[1], rows[4], columns[3], rows[5]),
            (columns[7], rows[1], columns[8], rows[2]),
        ]
        return cls(columns, rows, parks)

    def crossing(self, column: int, row: int) -> Point:
        return self.columns[column], self.rows[row]

    def neighbours(self, column: int, row: int) -> list[tuple[int, int]]:
        """Return the crossings that a driver can go to next."""
        beside = [(column + 1, row), (column - 1, row), (column, row + 1), (column, row - 1)]
        return [(c, r) for c, r in beside if 0 <= c < len(self.columns) and 0 <= r < len(self.rows)]

    def somewhere(self, rng: random.Random) -> Point:
        """Return a place on a street."""
        x = rng.uniform(self.columns[0], self.columns[-1])
        y = rng.uniform(self.rows[0], self.rows[-1])
        if rng.random() < len(self.columns) / (len(self.columns) + len(self.rows)):
            return rng.choice(self.columns), y
        return x, rng.choice(self.rows)


def _spread(length_m: float, count: int, rng: random.Random) -> list[float]:
    step = length_m / (count + 1)
    middle = (count - 1) / 2
    return [(n - middle) * step + rng.uniform(-0.22, 0.22) * step for n in range(count)]
