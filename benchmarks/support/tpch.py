"""Tables and statements like those of TPC-H, from a seeded generator. Amounts are doubles."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Table = dict[str, object]
_DAY_ZERO = datetime.date(1992, 1, 1)
_EPOCH = datetime.date(1970, 1, 1)
_DAYS = 2_405
_LINES_PER_ORDER = 4
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
_TYPES = [
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "PROMO", "ECONOMY")
    for finish in ("ANODIZED", "BURNISHED", "PLATED")
    for metal in ("TIN", "BRASS", "STEEL")
]
_CONTAINERS = [f"{a} {b}" for a in ("SM", "MED", "LG") for b in ("CASE", "BOX", "PACK", "PKG")]
_WORDS = ("quick", "final", "pending", "special", "requests", "deposits", "ironic", "accounts")
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")

DEFINITION: Mapping[str, Mapping[str, object]] = {
    "tables": {
        "region": {"columns": {"r_regionkey": "int32", "r_name": "string"},
                   "key": ["r_regionkey"], "views": {}},
        "nation": {"columns": {"n_nationkey": "int32", "n_name": "string", "n_regionkey": "int32"},
                   "key": ["n_nationkey"], "views": {}},
        "supplier": {"columns": {"s_suppkey": "int64", "s_name": "string", "s_nationkey": "int32",
                                 "s_acctbal": "double"}, "key": ["s_suppkey"], "views": {}},
        "part": {"columns": {"p_partkey": "int64", "p_brand": "string", "p_type": "string",
                             "p_size": "int32", "p_container": "string"},
                 "key": ["p_partkey"], "views": {}},
        "customer": {"columns": {"c_custkey": "int64", "c_name": "string", "c_nationkey": "int32",
                                 "c_acctbal": "double", "c_mktsegment": "string"},
                     "key": ["c_custkey"], "views": {}},
        "orders": {"columns": {"o_orderkey": "int64", "o_custkey": "int64",
                               "o_orderstatus": "string", "o_totalprice": "double",
                               "o_orderdate": "date", "o_orderpriority": "string",
                               "o_comment": "string"}, "key": ["o_orderkey"], "views": {}},
        "lineitem": {"columns": {"l_orderkey": "int64", "l_linenumber": "int32",
                                 "l_partkey": "int64", "l_suppkey": "int64", "l_quantity": "double",
                                 "l_extendedprice": "double", "l_discount": "double",
                                 "l_tax": "double", "l_returnflag": "string",
                                 "l_linestatus": "string", "l_shipdate": "date",
                                 "l_commitdate": "date", "l_receiptdate": "date",
                                 "l_shipinstruct": "string", "l_shipmode": "string"},
                     "key": ["l_orderkey", "l_linenumber"], "views": {}},
    },
    "id_keys": {},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Generator:
    """The rows of a scale: 1 has 1.5 million orders with four lines each."""

    scale: float

    @property
    def orders(self) -> int:
        return round(1_500_000 * self.scale)

    def small_tables(self) -> dict[str, pa.Table]:
        rng = np.random.default_rng(1)
        suppliers, parts, customers = self._sizes()
        nations = np.arange(25, dtype=np.int32)
        return {
            "region": pa.table({"r_regionkey": np.arange(5, dtype=np.int32), "r_name": _REGIONS}),
            "nation": pa.table(
                {
                    "n_nationkey": nations,
                    "n_name": [f"NATION {number:02}" for number in range(25)],
                    "n_regionkey": nations % 5,
                }
            ),
            "supplier": pa.table(
                {
                    "s_suppkey": np.arange(suppliers),
                    "s_name": [f"Supplier#{number:09}" for number in range(suppliers)],
                    "s_nationkey": rng.integers(0, 25, suppliers, dtype=np.int32),
                    "s_acctbal": _money(rng, suppliers, 10_000),
                }
            ),
            "part": pa.table(
                {
                    "p_partkey": np.arange(parts),
                    "p_brand": _picked(rng, [f"Brand#{n}" for n in range(11, 36)], parts),
                    "p_type": _picked(rng, _TYPES, parts),
                    "p_size": rng.integers(1, 51, parts, dtype=np.int32),
                    "p_container": _picked(rng, _CONTAINERS, parts),
                }
            ),
            "customer": pa.table(
                {
                    "c_custkey": np.arange(customers),
                    "c_name": [f"Customer#{number:09}" for number in range(customers)],
                    "c_nationkey": rng.integers(0, 25, customers, dtype=np.int32),
                    "c_acctbal": _money(rng, customers, 10_000),
                    "c_mktsegment": _picked(rng, _SEGMENTS, customers),
                }
            ),
        }

    def uploads(self, first: int, last: int, per_upload: int) -> Iterator[dict[str, pa.Table]]:
        """Yield orders from `first` to before `last` with their lines."""
        for begin in range(first, last, per_upload):
            yield self._orders(begin, min(per_upload, last - begin))

    def _sizes(self) -> tuple[int, int, int]:
        """Return the numbers of suppliers, parts and customers."""
        return tuple(max(round(n * self.scale), 50) for n in (10_000, 200_000, 150_000))  # type: ignore[return-value]

    def _orders(self, first: int, count: int) -> dict[str, pa.Table]:
        rng = np.random.default_rng(first + 2)
        suppliers, parts, customers = self._sizes()
        keys = np.arange(first, first + count)
        days = rng.integers(0, _DAYS, count)
        lines = count * _LINES_PER_ORDER
        ordered = np.repeat(days, _LINES_PER_ORDER)
        shipped = ordered + rng.integers(1, 122, lines)
        quantity = rng.integers(1, 51, lines).astype(np.float64)
        return {
            "orders": pa.table(
                {
                    "o_orderkey": keys,
                    # A third of the customers has no orders.
                    "o_custkey": rng.integers(0, customers, count) // 3 * 3,
                    "o_orderstatus": _picked(rng, ("F", "O", "P"), count),
                    "o_totalprice": _money(rng, count, 500_000),
                    "o_orderdate": _dates(days),
                    "o_orderpriority": _picked(rng, _PRIORITIES, count),
                    "o_comment": _comments(rng, count),
                }
            ),
            "lineitem": pa.table(
                {
                    "l_orderkey": np.repeat(keys, _LINES_PER_ORDER),
                    "l_linenumber": np.tile(np.arange(1, 5, dtype=np.int32), count),
                    "l_partkey": rng.integers(0, parts, lines),
                    "l_suppkey": rng.integers(0, suppliers, lines),
                    "l_quantity": quantity,
                    "l_extendedprice": np.round(quantity * rng.uniform(900, 2000, lines), 2),
                    "l_discount": rng.integers(0, 11, lines) / 100,
                    "l_tax": rng.integers(0, 9, lines) / 100,
                    "l_returnflag": _picked(rng, ("A", "N", "R"), lines),
                    "l_linestatus": _picked(rng, ("F", "O"), lines),
                    "l_shipdate": _dates(shipped),
                    "l_commitdate": _dates(ordered + rng.integers(30, 91, lines)),
                    "l_receiptdate": _dates(shipped + rng.integers(1, 31, lines)),
                    "l_shipinstruct": _picked(rng, _INSTRUCTIONS, lines),
                    "l_shipmode": _picked(rng, _MODES, lines),
                }
            ),
        }


def _picked(rng: np.random.Generator, texts: object, count: int) -> pa.Array:
    values = pa.array(texts)
    return values.take(pa.array(rng.integers(0, len(values), count)))


def _comments(rng: np.random.Generator, count: int) -> pa.Array:
    pool = [" ".join(_WORDS[(n >> s) % 8] for s in (0, 3, 6, 9)) + f" {n}" for n in range(4096)]
    return _picked(rng, pool, count)


def _money(rng: np.random.Generator, count: int, most: float) -> NDArray[np.float64]:
    return np.round(rng.uniform(0, most, count), 2)


def _dates(days: NDArray[np.int64]) -> pa.Array:
    offset = (_DAY_ZERO - _EPOCH).days
    return pa.array((days + offset).astype(np.int32), pa.int32()).view(pa.date32())


STATEMENTS: Mapping[str, str] = {
    "q1": """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
        sum(l_extendedprice) AS sum_base, sum(l_extendedprice * (1 - l_discount)) AS sum_disc,
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
        avg(l_quantity) AS avg_qty, avg(l_discount) AS avg_disc, count(*) AS n
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "q3": """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15'
        AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC, l_orderkey LIMIT 10""",
    "q4": """SELECT o_orderpriority, count(*) AS n FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS (
        SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "q5": """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
        JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
        WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01'
        AND o_orderdate < DATE '1995-01-01' GROUP BY n_name ORDER BY revenue DESC, n_name""",
    "q6": """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
        AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    "q10": """SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, n_name
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        JOIN nation ON c_nationkey = n_nationkey
        WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'
        AND l_returnflag = 'R' GROUP BY c_custkey, c_name, n_name
        ORDER BY revenue DESC, c_custkey LIMIT 20""",
    "q12": """SELECT l_shipmode,
        sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high,
        sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey WHERE l_shipmode IN ('MAIL', 'SHIP')
        AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
        AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
        GROUP BY l_shipmode ORDER BY l_shipmode""",
    "q13": """SELECT c_count, count(*) AS custdist FROM (
        SELECT c_custkey, count(o_orderkey) AS c_count FROM customer LEFT JOIN orders
        ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) c
        GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    "q14": """SELECT 100 * sum(CASE WHEN p_type LIKE 'PROMO%'
        THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
        / sum(l_extendedprice * (1 - l_discount)) AS promo
        FROM lineitem JOIN part ON l_partkey = p_partkey
        WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
    "q18": """SELECT c_custkey, o_orderkey, o_totalprice, sum(l_quantity) AS quantity
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
        WHERE o_orderkey IN (
        SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 180)
        GROUP BY c_custkey, o_orderkey, o_totalprice
        ORDER BY o_totalprice DESC, o_orderkey LIMIT 100""",
    "q19": """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM lineitem JOIN part ON p_partkey = l_partkey
        WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
        (p_brand = 'Brand#12' AND p_container LIKE 'SM%' AND l_quantity BETWEEN 1 AND 11)
        OR (p_brand = 'Brand#23' AND p_container LIKE 'MED%' AND l_quantity BETWEEN 10 AND 20)
        OR (p_brand = 'Brand#34' AND p_container LIKE 'LG%' AND l_quantity BETWEEN 20 AND 30))""",
    "point": "SELECT * FROM orders WHERE o_orderkey = 12345",
    "windows": """SELECT o_custkey, o_orderkey, o_totalprice FROM (
        SELECT o_custkey, o_orderkey, o_totalprice,
        row_number() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) AS r
        FROM orders) t WHERE r = 1 ORDER BY o_totalprice DESC, o_orderkey LIMIT 50""",
}
