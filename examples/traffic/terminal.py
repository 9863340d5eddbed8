"""The city in a terminal."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from rich.console import Group
from rich.layout import Layout
from rich.panel import Panel
from rich.style import Style
from rich.text import Text

from examples.traffic.city import HEIGHT_M, RIVER_M, WIDTH_M, Point, river
from examples.traffic.people import KINDS, SHOWN_S

if TYPE_CHECKING:
    from examples.traffic.scene import Notification, Scene

GROUND, STREET, RIVER, PARK = "#0f1720", "#3b4a5a", "#2a6f97", "#2d6a4f"
SIDE_COLUMNS, FOOT_ROWS = 40, 3
ARROWS = {(1, 0): "▶", (-1, 0): "◀", (0, 1): "▲", (0, -1): "▼"}
MIDDLE = 0.5

Cell = tuple[str, str, str]


class Map:
    """Letters in rows, each with a colour and a background."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cells: list[list[Cell]] = [[(" ", STREET, GROUND)] * columns for _ in range(rows)]

    def place(self, point: Point) -> tuple[int, int]:
        """Return the column and row of a position."""
        x, y = point
        column = round((x / WIDTH_M + MIDDLE) * (self.columns - 1))
        row = round((MIDDLE - y / HEIGHT_M) * (self.rows - 1))
        return column, row

    def there(self, column: int, row: int) -> Point:
        """Return the position of a letter."""
        x = (column / (self.columns - 1) - MIDDLE) * WIDTH_M
        return x, (MIDDLE - row / (self.rows - 1)) * HEIGHT_M

    def put(self, column: int, row: int, letter: str, colour: str, ground: str = "") -> None:
        if 0 <= column < self.columns and 0 <= row < self.rows:
            self.cells[row][column] = (letter, colour, ground or self.cells[row][column][2])

    def tint(self, centre: Point, radius_m: float, ground: str) -> None:
        """Colour the background around a position."""
        for row in range(self.rows):
            for column in range(self.columns):
                if math.dist(self.there(column, row), centre) <= radius_m:
                    letter, colour, _ = self.cells[row][column]
                    self.cells[row][column] = (letter, colour, ground)

    def text(self) -> Text:
        picture = Text()
        for number, row in enumerate(self.cells):
            for letter, colour, ground in row:
                picture.append(letter, Style(color=colour, bgcolor=ground))
            if number < self.rows - 1:
                picture.append("\n")
        return picture


def drawn(scene: Scene, columns: int, rows: int) -> Layout:
    """Return the whole screen."""
    screen = Layout()
    screen.split_column(Layout(name="body"), Layout(_foot(scene), name="foot", size=FOOT_ROWS))
    screen["body"].split_row(
        Layout(name="map"), Layout(_side(scene, rows), name="side", size=SIDE_COLUMNS)
    )
    inner = Map(max(20, columns - SIDE_COLUMNS - 2), max(10, rows - FOOT_ROWS - 2))
    _land(inner, scene)
    _life(inner, scene, time.monotonic())
    title = "[bold #e6edf3]traffic[/] [#8899a6]· drivers and the incidents around them[/]"
    screen["map"].update(Panel(inner.text(), title=title, border_style="#3b4a5a", padding=0))
    return screen


def _land(city: Map, scene: Scene) -> None:
    for row in range(city.rows):
        for column in range(city.columns):
            x, y = city.there(column, row)
            if any(w < x < e and s < y < n for w, s, e, n in scene.city.parks):
                city.put(column, row, "♣" if (column * 7 + row * 3) % 5 == 0 else "·", PARK)
            if abs(y - river(x)) < RIVER_M:
                city.put(column, row, "~" if (column + row) % 3 else "≈", RIVER, "#10304a")
    across = [city.place((0, y))[1] for y in scene.city.rows]
    along = [city.place((x, 0))[0] for x in scene.city.columns]
    for row in across:
        for column in range(along[0], along[-1] + 1):
            city.put(column, row, "─", STREET)
    for column in along:
        for row in range(across[-1], across[0] + 1):
            city.put(column, row, "┼" if row in across else "│", STREET)


def _life(city: Map, scene: Scene, now_s: float) -> None:
    for incident in scene.incidents.values():
        city.tint(incident.at, incident.radius_m, _mixed(KINDS[incident.kind][1], 0.22))
    for driver in scene.drivers:
        for point in list(driver.trail)[-12:-1:3]:
            column, row = city.place(point)
            city.put(column, row, "•", _mixed(driver.colour, 0.5))
    for incident in scene.incidents.values():
        sign, colour, _ = KINDS[incident.kind]
        city.put(*city.place(incident.at), sign, _mixed(colour, 0.4 + 0.6 * incident.fades(now_s)))
    for driver in scene.drivers:
        column, row = city.place(driver.at)
        x, y = driver.heading
        arrow = ARROWS[round(x), round(y)]
        if driver.is_warned(now_s):
            city.put(column, row, arrow, GROUND, driver.colour)
            for place, letter in enumerate(driver.name, start=column + 2):
                city.put(place, row, letter, driver.colour)
        else:
            city.put(column, row, arrow, driver.colour)


def _side(scene: Scene, rows: int) -> Panel:
    now_s = time.monotonic()
    lines = [
        _line(notification, now_s)
        for notification in list(scene.notifications)[: max(4, rows - 14)]
    ]
    signs = Text("\n")
    for name, (sign, colour, radius_m) in KINDS.items():
        signs.append(f" {sign} {name:<10}", colour)
        signs.append(f"{radius_m:.0f} m\n", "#8899a6")
    return Panel(
        Group(*lines, signs), title="[bold #e6edf3]told[/]", border_style="#3b4a5a", padding=(0, 1)
    )


def _line(notification: Notification, now_s: float) -> Text:
    fresh = now_s - notification.at_s < SHOWN_S
    sign, colour, _ = KINDS[notification.incident.kind]
    line = Text(no_wrap=True)
    line.append(
        f"{notification.driver.name:<5}", notification.driver.colour if fresh else "#8899a6"
    )
    line.append(f"{sign} {notification.incident.kind:<10}", colour if fresh else "#667380")
    line.append(f"{notification.metres:4.0f} m ", "#c9d1d9" if fresh else "#667380")
    line.append("was there" if notification.past else "just now", "#8899a6")
    return line


def _foot(scene: Scene) -> Panel:
    text = Text(justify="center")
    for number, what, colour in (
        (scene.published, "published", "#ffa94d"),
        (scene.n_subscriptions, "subscriptions", "#4cc9f0"),
        (scene.notified_past, "incidents of the past ten seconds", "#b197fc"),
        (scene.notified_later, "incidents of the next ten seconds", "#90be6d"),
    ):
        text.append(f" {number} ", f"bold {colour}")
        text.append(what + "  ", "#c9d1d9")
    if scene.line.error:
        text = Text(scene.line.error, "bold red", justify="center")
    return Panel(text, border_style="#3b4a5a", padding=0)


def _mixed(colour: str, share: float) -> str:
    """Return a colour blended into the background."""
    parts = [
        round(int(GROUND[i : i + 2], 16) * (1 - share) + int(colour[i : i + 2], 16) * share)
        for i in (1, 3, 5)
    ]
    return "#{:02x}{:02x}{:02x}".format(*parts)
