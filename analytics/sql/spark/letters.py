"""Upper and lower case as DuckDB defines them, as tables for Spark's `translate`.

DuckDB maps each character to one, without regard to its neighbours. Java maps some to several, and
some by what is beside them.
"""

from __future__ import annotations

from functools import lru_cache

import duckdb
import pyarrow as pa

_SURROGATES = range(0xD800, 0xE000)
_CHARACTERS = range(1, 0x110000)


@lru_cache(maxsize=1)
def lower() -> tuple[str, str]:
    """Return the characters that `lower` changes, and what each becomes."""
    return _table("lower")


@lru_cache(maxsize=1)
def upper() -> tuple[str, str]:
    """Return the characters that `upper` changes, and what each becomes."""
    return _table("upper")


def _table(function: str) -> tuple[str, str]:
    characters = pa.array([chr(n) for n in _CHARACTERS if n not in _SURROGATES])
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("characters", pa.table({"c": characters}))
        changed = connection.execute(
            f"SELECT c, {function}(c) FROM characters WHERE {function}(c) <> c"
        ).fetchall()
    return "".join(c for c, _ in changed), "".join(new for _, new in changed)
