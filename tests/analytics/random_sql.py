"""Random statements over the tables of `tests.analytics.dataset_client.SHOP`."""

from __future__ import annotations

import random

_BACKSLASH = chr(92)
_PATTERNS = (
    "a%",
    "%b%",
    "%a%a%",
    "%o%b%",
    "%",
    "_",
    f"%{_BACKSLASH}%",
    "B%",
    "é%",
    f"z{_BACKSLASH}_%",
)
_CONSTANTS = ("0", "1", "2", "-1", "7", "2147483647", "1.5", "0.25", "-2.5", "1e3")
_FIELDS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy")
_NUMBERS = {"orders": ("id", "count"), "stock": ("item", "pieces")}
_TEXTS = {"orders": ("customer",), "stock": ("place", "note")}
_DAYS = {"orders": "day", "stock": "DATE '2024-02-29'"}
_KEYS = {"orders": "id", "stock": "place, item"}
_AGGREGATES = ("sum", "avg", "min", "max", "count")


class RandomSql:
    """Writes statements. Their rows are ordered, or there is one."""

    def __init__(self, seed: int | None) -> None:
        self._rng = random.Random(seed)
        self._table = "orders"

    def statement(self) -> str:
        table = self._table = self._rng.choice(["orders", "stock"])
        key = _KEYS[table]
        aggregate = self._rng.choice(_AGGREGATES)
        kind = self._rng.randrange(5)
        if kind == 0:
            columns = f"{key}, {self._number(3)} AS a, {self._text(2)} AS b"
            return f"SELECT {columns} FROM {table} WHERE {self._condition(2)} ORDER BY {key}"
        if kind == 1:
            order = f"{self._rng.choice(['', 'DESC'])} NULLS {self._rng.choice(['FIRST', 'LAST'])}"
            columns = f"{self._text(1)} AS g, {aggregate}({self._number(2)}) AS v, count(*) AS n"
            return f"SELECT {columns} FROM {table} GROUP BY 1 ORDER BY 1 {order}"
        if kind == 2:
            frame = self._rng.choice(["", " ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING"])
            window = f"(PARTITION BY {self._text(0)} ORDER BY {key}{frame})"
            value = f"{aggregate}({self._number(1)}) OVER {window} AS w"
            return f"SELECT {key}, {value} FROM {table} ORDER BY {key}"
        if kind == 3:
            inner = (
                f"SELECT {self._text(0)} AS g, sum({self._number(1)}) AS s FROM {table}"
                f" WHERE {self._condition(1)} GROUP BY ALL"
            )
            columns = "g, s, s / 2 AS half, s * 2 AS double"
            rest = "WHERE s IS NOT NULL ORDER BY g NULLS LAST"
            return f"WITH a AS ({inner}) SELECT {columns} FROM a {rest}"
        columns = f"count(*) AS n, count(DISTINCT {self._number(1)}) AS d"
        return f"SELECT {columns} FROM {table} WHERE {self._condition(3)}"

    def _column(self) -> str:
        return self._rng.choice(_NUMBERS[self._table])

    def _number(self, depth: int) -> str:
        if not depth or self._rng.random() < 0.25:
            real = "amount" if self._table == "orders" else "pieces"
            simple = (self._column(), self._column(), self._rng.choice(_CONSTANTS), real)
            return self._rng.choice(simple)
        return self._computed(depth)

    def _computed(self, depth: int) -> str:
        rng = self._rng
        kind = rng.randrange(4, 16)
        a, b = self._number(depth - 1), self._number(depth - 1)
        if kind < 8:
            return f"({a} {'+-*/'[kind - 4]} {b})"
        if kind == 8:
            return f"CASE WHEN {self._condition(depth - 1)} THEN {a} ELSE {b} END"
        if kind == 9:
            return f"{rng.choice(['coalesce', 'nullif', 'greatest', 'least'])}({a}, {b})"
        if kind == 10:
            return f"({self._column()} {rng.choice(['%', '//'])} {self._column()})"
        if kind == 11:
            return f"round(({a})::double, {rng.randrange(4)})"
        if kind == 12:
            field = f"extract({rng.choice(_FIELDS)} FROM {_DAYS[self._table]})"
            return rng.choice([field, f"length({self._text(0)})"])
        return f"{rng.choice(['abs', 'floor', 'ceil', '-'])}(({a})::double)"

    def _text(self, depth: int) -> str:
        column = self._rng.choice(_TEXTS[self._table])
        constant = self._rng.choice(["a", "ada", "", "é", "b%", "it''s"])
        simple = (column, f"'{constant}'")
        if not depth:
            return self._rng.choice(simple)
        start, length = self._rng.randrange(1, 4), self._rng.randrange(4)
        return self._rng.choice(
            [
                *simple,
                f"upper({column})",
                f"lower({column})",
                f"{column} || '-' || {self._column()}",
                f"substr({column}, {start}, {length})",
                f"replace({column}, 'a', '{constant[:1]}')",
                f"trim({column})",
                f"coalesce({column}, 'none')",
            ]
        )

    def _condition(self, depth: int) -> str:
        rng = self._rng
        kind = rng.randrange(10 if depth else 5)
        number = self._number(max(depth - 1, 0))
        if kind == 0:
            operator = rng.choice(["<", "<=", "=", "<>", ">", ">="])
            return f"{self._number(0)} {operator} {number}"
        if kind == 1:
            return f"{self._text(0)} {rng.choice(['<', '=', '<>', '>='])} {self._text(depth)}"
        if kind == 2:
            return f"{self._number(0)} IS {rng.choice(['', 'NOT '])}NULL"
        if kind == 3:
            return f"{self._number(0)} IN ({self._number(0)}, {self._number(0)})"
        if kind == 4:
            word = rng.choice(["LIKE", "ILIKE", "NOT LIKE", "NOT ILIKE"])
            return f"{self._text(0)} {word} '{rng.choice(_PATTERNS)}'"
        if kind == 5:
            return f"{number} BETWEEN {self._number(0)} AND {self._number(0)}"
        if kind == 6:
            return f"{number} IS DISTINCT FROM {self._number(0)}"
        first, second = self._condition(depth - 1), self._condition(depth - 1)
        return {7: f"({first} AND {second})", 8: f"({first} OR {second})", 9: f"NOT ({first})"}[
            kind
        ]
