"""Formats the engine's counters as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rillbase_native import Engine

_STEP = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Format a number of bytes with a suitable unit."""
    for unit in _UNITS[:-1]:
        if count < _STEP:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _STEP
    return f"{count:.1f} {_UNITS[-1]}"


def stats(engine: Engine) -> Iterable[str]:
    """Yield the lines that describe a database, by keyspace and level."""
    counted = engine.stats()
    rows = [
        (
            keyspace["name"],
            str(number),
            f"{level['runs']:,}",
            f"{level['files']:,}",
            size(level["bytes"]),
            f"{level['entries']:,}",
            f"{level['deletes']:,}",
        )
        for keyspace in counted["keyspaces"]
        for number, level in enumerate(keyspace["levels"])
        if level["files"]
    ]
    yield from table(("keyspace", "level", "runs", "files", "size", "entries", "deletes"), rows)
    yield ""
    amplified = [
        (
            keyspace["name"],
            f"{keyspace['read_amplification']:,}",
            f"{keyspace['space_amplification']:.2f}",
        )
        for keyspace in counted["keyspaces"]
    ]
    yield from table(("amplification", "lookup depth", "size ÷ oldest run's"), amplified)
    in_memory = sum(keyspace["memtable_bytes"] for keyspace in counted["keyspaces"])
    yield ""
    yield f"keyspaces  {len(counted['keyspaces']):,}"
    yield f"sequence   {counted['sequence']:,}"
    yield f"in memory  {size(in_memory)}"
    yield f"log        {size(counted['log_bytes'])}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yield the lines of a table: the first column left-aligned, numbers right-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        yield "  ".join(cells).rstrip()
