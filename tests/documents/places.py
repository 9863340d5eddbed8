"""Random geometries near a few places, and other values."""

from __future__ import annotations

import random

#: Cities, both poles, the date line, and corners of the cube that cells are projected on.
PLACES = [(13.4, 52.5), (-73.9, 40.7), (180.0, 10.0), (0.0, 90.0), (0.0, -90.0), (45.0, 35.26)]


def position(generator: random.Random) -> list[float]:
    longitude, latitude = generator.choice(PLACES)
    scale = generator.choice([0.0001, 0.01, 1.0, 30.0])
    longitude += generator.uniform(-scale, scale)
    longitude -= 360 * round(longitude / 360)
    return [longitude, max(-90.0, min(90.0, latitude + generator.uniform(-scale, scale)))]


def place(generator: random.Random) -> object:
    """Return a geometry, a list of some, or something else."""
    kind = generator.randrange(10)
    if kind < 5:
        return {"type": "Point", "coordinates": position(generator)}
    if kind < 7:
        return position(generator)
    if kind == 7:
        return [{"type": "Point", "coordinates": position(generator)} for _ in range(3)]
    if kind == 8:
        corner = position(generator)
        corners = [corner, [corner[0] * 0.99, corner[1]], [corner[0], corner[1] * 0.99], corner]
        return {"type": "Polygon", "coordinates": [corners]}
    return generator.choice([None, 5, "text"])
