"""Plots as SVG: lines over a logarithmic x-axis, and marks at limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _BOTTOM = 70, 32, 60
#: The names of the lines are between title and plot, one per row.
_TITLE_HEIGHT, _ROW_HEIGHT = 44, 18
_POINTS = 100
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


@dataclass(frozen=True, slots=True)
class Line:
    """Points that are joined."""

    name: str
    points: Sequence[tuple[float, float]]


def thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Return as many points as can be distinguished, including the last."""
    step = max(len(points) // _POINTS, 1)
    return points[::-step][::-1]


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled position on the x-axis."""

    name: str
    x: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Both axes are logarithmic, or both start at zero.

    A sweep's x-axis is logarithmic and labelled with the measured values; its y-axis starts at
    zero.
    """

    title: str
    x_name: str
    y_name: str
    lines: Sequence[Line]
    marks: Sequence[Mark] = ()
    linear: bool = False
    sweep: bool = False

    def save(self, path: Path) -> None:
        """Write it as SVG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.svg())

    def svg(self) -> str:
        points = [point for line in self.lines for point in line.points]
        linear: type[_Axis] = _LinearAxis if self.linear else _Axis
        x_axis = _MeasuredAxis if self.sweep else linear
        y_axis = _LinearAxis if self.sweep else linear
        values = [x for x, _ in points] + [mark.x for mark in self.marks]
        xs = x_axis(values, _LEFT, _WIDTH - _RIGHT)
        top = _TITLE_HEIGHT + _ROW_HEIGHT * len(self.lines)
        ys = y_axis([y for _, y in points], _HEIGHT - _BOTTOM, top)
        up = f"translate(18 {(top + _HEIGHT - _BOTTOM) / 2}) rotate(-90)"
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
            '<g font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
            _text(_LEFT, 24, self.title, size=15),
            _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 16, self.x_name, anchor="middle"),
            f'<g transform="{up}">{_text(0, 0, self.y_name, anchor="middle")}</g>',
            *_grid(xs, ys, top),
        ]
        for number, mark in enumerate(self.marks):
            parts += _mark(mark, xs.position(mark.x), top, number)
        for number, line in enumerate(self.lines):
            parts += _line(line, xs, ys, number)
        return "\n".join([*parts, "</g>", "</svg>", ""])


class _Axis:
    """From a value to a place, by its logarithm."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        positive = [value for value in values if value > 0] or [1.0]
        self._low = math.floor(math.log10(min(positive)))
        self._high = max(math.ceil(math.log10(max(positive))), self._low + 1)
        self._begin, self._end = begin, end

    def position(self, value: float) -> float:
        share = (math.log10(max(value, 10**self._low)) - self._low) / (self._high - self._low)
        return self._begin + share * (self._end - self._begin)

    def steps(self) -> list[float]:
        """Powers of ten, and values between them if there are few."""
        few = self._high - self._low <= 2
        between = (1, 2, 5) if few else (1,)
        decades = range(self._low, self._high)
        return [by * 10.0**power for power in decades for by in between] + [10.0**self._high]


class _MeasuredAxis(_Axis):
    """Logarithmic, from the smallest measured value to the largest."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        super().__init__(values, begin, end)
        self._values = sorted({value for value in values if value > 0}) or [1.0]
        self._lowest = math.log10(self._values[0])
        self._width = math.log10(self._values[-1]) - self._lowest or 1.0

    def position(self, value: float) -> float:
        share = (math.log10(max(value, self._values[0])) - self._lowest) / self._width
        return self._begin + share * (self._end - self._begin)

    def steps(self) -> list[float]:
        return self._values


class _LinearAxis(_Axis):
    """From a value to a position, starting at zero."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        super().__init__(values, begin, end)
        most = max([value for value in values if value > 0] or [1.0])
        power = 10.0 ** math.floor(math.log10(most))
        self._step = next(by * power for by in (0.1, 0.2, 0.5, 1, 2) if most / (by * power) <= 10)
        self._most = math.ceil(most / self._step) * self._step

    def position(self, value: float) -> float:
        return self._begin + value / self._most * (self._end - self._begin)

    def steps(self) -> list[float]:
        return [self._step * number for number in range(round(self._most / self._step) + 1)]


def _grid(xs: _Axis, ys: _Axis, top: float) -> list[str]:
    parts = []
    for value in xs.steps():
        x = xs.position(value)
        parts.append(f'<path d="M{x:.1f} {top}V{_HEIGHT - _BOTTOM}" stroke="#ddd"/>')
        parts.append(_text(x, _HEIGHT - _BOTTOM + 18, _number(value), anchor="middle"))
    for value in ys.steps():
        y = ys.position(value)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 8, y + 4, _number(value), anchor="end"))
    return parts


def _line(line: Line, xs: _Axis, ys: _Axis, number: int) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    positions = [(xs.position(x), ys.position(y)) for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
    row = _TITLE_HEIGHT + _ROW_HEIGHT * number
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in positions),
        f'<path d="M{_LEFT} {row - 4}h18" stroke="{colour}" stroke-width="2"/>',
        _text(_LEFT + 26, row, line.name),
    ]


def _mark(mark: Mark, x: float, top: float, number: int) -> list[str]:
    y = _HEIGHT - _BOTTOM - 14 - 16 * number
    return [
        f'<path d="M{x:.1f} {top}V{_HEIGHT - _BOTTOM}" stroke="#888" stroke-dasharray="4 3"/>',
        _text(x + 5, y, mark.name),
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="#222">{escape(text)}</text>'
    )
