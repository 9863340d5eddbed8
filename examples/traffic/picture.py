"""The city as a picture (SVG)."""

from __future__ import annotations

import time
from html import escape

from examples.traffic.city import HEIGHT_M, RIVER_M, WIDTH_M, Point, river
from examples.traffic.people import KINDS, Driver, Incident
from examples.traffic.scene import AROUND_M, Scene

#: Pixels per metre, and the margin around the city.
SCALE, EDGE, HEAD, FOOT = 0.36, 24.0, 76.0, 64.0
INK, QUIET = "#e6edf3", "#8b9bab"
FONT = "font-family='Inter, Segoe UI, Helvetica, Arial, sans-serif'"
BLOCKS = "#131c26"
#: How long lines to recent incidents take to fade out.
REMEMBERED_S = 10.0


def drawn(scene: Scene) -> str:
    """Return the picture of the current state."""
    now_s = time.monotonic()
    width, height = WIDTH_M * SCALE + 2 * EDGE, HEIGHT_M * SCALE + HEAD + FOOT
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' {FONT}>",
        _gradients(),
        f"<rect width='{width:.0f}' height='{height:.0f}' fill='#0b1118'/>",
        _title(scene, width),
        _clipped(),
        *_land(scene),
        *(_incident(incident, now_s) for incident in scene.incidents.values()),
        *(_driver(driver) for driver in scene.drivers),
        *_meetings(scene, now_s),
        *(_head(driver, now_s) for driver in scene.drivers),
        "</g>",
        _legend(width, height),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _on_paper(point: Point) -> Point:
    x, y = point
    return EDGE + (x + WIDTH_M / 2) * SCALE, HEAD + (HEIGHT_M / 2 - y) * SCALE


def _gradients() -> str:
    glows = "".join(
        f"<radialGradient id='{name}'><stop offset='0' stop-color='{colour}' stop-opacity='.55'/>"
        f"<stop offset='.7' stop-color='{colour}' stop-opacity='.16'/>"
        f"<stop offset='1' stop-color='{colour}' stop-opacity='.02'/></radialGradient>"
        for name, (_, colour, _) in KINDS.items()
    )
    return (
        f"<defs>{glows}<linearGradient id='water' x2='1'><stop stop-color='#12405f'/>"
        "<stop offset='1' stop-color='#1b5a80'/></linearGradient>"
        f"<clipPath id='city'><rect x='{EDGE}' y='{HEAD}' width='{WIDTH_M * SCALE:.0f}' "
        f"height='{HEIGHT_M * SCALE:.0f}' rx='14'/></clipPath></defs>"
    )


def _clipped() -> str:
    return (
        f"<rect x='{EDGE}' y='{HEAD}' width='{WIDTH_M * SCALE:.0f}' "
        f"height='{HEIGHT_M * SCALE:.0f}' rx='14' fill='{BLOCKS}'/><g clip-path='url(#city)'>"
    )


def _title(scene: Scene, width: float) -> str:
    n_notifications = scene.notified_past + scene.notified_later
    return (
        f"<text x='{EDGE}' y='38' fill='{INK}' font-size='22' "
        f"font-weight='700'>traffic</text><text x='{EDGE}' y='60' fill='{QUIET}' "
        "font-size='13'>Each driver subscribes to incidents nearby, of the past ten seconds and "
        f"the next ten.</text><text x='{width - EDGE:.0f}' y='38' fill='{INK}' font-size='14' "
        f"text-anchor='end'>{scene.published} incidents · {scene.n_subscriptions} "
        f"subscriptions · {n_notifications} notifications</text>"
        f"<text x='{width - EDGE:.0f}' y='60' fill='{QUIET}' font-size='13' "
        f"text-anchor='end'>{scene.notified_past} were past incidents, "
        f"{scene.notified_later} arrived live</text>"
    )


def _land(scene: Scene) -> list[str]:
    parts = []
    for west, south, east, north in scene.city.parks:
        (x, y), (right, bottom) = _on_paper((west, north)), _on_paper((east, south))
        parts.append(
            f"<rect x='{x + 5:.1f}' y='{y + 5:.1f}' width='{right - x - 10:.1f}' "
            f"height='{bottom - y - 10:.1f}' rx='12' fill='#17392b'/>"
        )
    edge = round(WIDTH_M / 2) + 100
    shore = [(float(x), river(x)) for x in range(-edge, edge + 1, 50)]
    parts.append(_line(shore, "url(#water)", RIVER_M * 2 * SCALE, 0.95))
    north_south, east_west = HEIGHT_M, WIDTH_M
    streets = [[(x, -north_south), (x, north_south)] for x in scene.city.columns]
    streets += [[(-east_west, y), (east_west, y)] for y in scene.city.rows]
    parts += [_line(street, "#22303d", 9, 1) for street in streets]
    parts += [_line(street, "#2e3f4f", 5.5, 1) for street in streets]
    return parts


def _line(points: list[Point], colour: str, width: float, opacity: float) -> str:
    shown = " ".join("{:.1f},{:.1f}".format(*_on_paper(point)) for point in points)
    return (
        f"<polyline points='{shown}' fill='none' stroke='{colour}' stroke-width='{width:.1f}' "
        f"stroke-opacity='{opacity:.2f}' stroke-linecap='round' stroke-linejoin='round'/>"
    )


def _incident(incident: Incident, now_s: float) -> str:
    x, y = _on_paper(incident.at)
    sign, colour, _ = KINDS[incident.kind]
    left = 0.35 + 0.65 * incident.fades(now_s)
    radius = incident.radius_m * SCALE
    return (
        f"<g opacity='{left:.2f}'><circle cx='{x:.1f}' cy='{y:.1f}' r='{radius:.1f}' "
        f"fill='url(#{incident.kind})' stroke='{colour}' stroke-opacity='.5'/>"
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='10' fill='{colour}'/>"
        f"<text x='{x:.1f}' y='{y + 4.5:.1f}' font-size='12' text-anchor='middle' fill='#0b1118'>"
        f"{sign}</text></g>"
    )


def _driver(driver: Driver) -> str:
    """Return the driver's trail, and the circle of the subscription."""
    trail = list(driver.trail)
    parts = [
        _line(trail[start : start + 10], driver.colour, 2.6, 0.08 + 0.5 * start / len(trail))
        for start in range(0, max(1, len(trail) - 1), 9)
    ]
    x, y = _on_paper(driver.at)
    parts.append(
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{AROUND_M * SCALE:.1f}' fill='{driver.colour}' "
        f"fill-opacity='.035' stroke='{driver.colour}' stroke-opacity='.35' "
        "stroke-dasharray='3 6'/>"
    )
    return "".join(parts)


def _meetings(scene: Scene, now_s: float) -> list[str]:
    """Return a line from each driver to the incidents of recent notifications."""
    lines = []
    for notification in scene.notifications:
        left = 1 - (now_s - notification.at_s) / REMEMBERED_S
        if left > 0:
            ends = [notification.driver.at, notification.incident.at]
            lines.append(_line(ends, KINDS[notification.incident.kind][1], 2.2, 0.15 + 0.8 * left))
    return lines


def _head(driver: Driver, now_s: float) -> str:
    x, y = _on_paper(driver.at)
    warned = driver.is_warned(now_s)
    ring = f"<circle cx='{x:.1f}' cy='{y:.1f}' r='12' fill='{driver.colour}' fill-opacity='.25'/>"
    return (
        (ring if warned else "")
        + f"<circle cx='{x:.1f}' cy='{y:.1f}' r='6' fill='{driver.colour}' stroke='#0b1118' "
        f"stroke-width='2'/><text x='{x + 10:.1f}' y='{y - 8:.1f}' font-size='12' "
        f"font-weight='{700 if warned else 500}' fill='{driver.colour}' stroke='{BLOCKS}' "
        f"stroke-width='3' paint-order='stroke'>{escape(driver.name)}</text>"
    )


def _legend(width: float, height: float) -> str:
    parts, x, y = [], EDGE + 4, height - FOOT / 2
    for name, (sign, colour, radius_m) in KINDS.items():
        parts.append(
            f"<circle cx='{x + 9:.0f}' cy='{y:.0f}' r='9' fill='{colour}'/>"
            f"<text x='{x + 9:.0f}' y='{y + 4:.0f}' font-size='11' text-anchor='middle' "
            f"fill='#0b1118'>{sign}</text><text x='{x + 26:.0f}' y='{y + 4.5:.0f}' font-size='13' "
            f"fill='{INK}'>{name} <tspan fill='{QUIET}'>{radius_m:.0f} m</tspan></text>"
        )
        x += 150
    parts.append(
        f"<circle cx='{x + 30:.0f}' cy='{y:.0f}' r='9' fill='none' stroke='{QUIET}' "
        f"stroke-dasharray='3 4'/><text x='{x + 48:.0f}' y='{y + 4.5:.0f}' font-size='13' "
        f"fill='{INK}'>area of a driver's subscription <tspan fill='{QUIET}'>{AROUND_M:.0f} "
        f"m</tspan></text><text x='{width - EDGE:.0f}' y='{y + 4.5:.0f}' font-size='13' "
        f"fill='{QUIET}' text-anchor='end'>a line: a recent notification</text>"
    )
    return "".join(parts)
