"""The bounds with which an index is read cover every matching document, in the order of the sort."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from documents.store.planner import restricts_sort
from rillbase_native import (
    Definition,
    Filter,
    Selection,
    Sort,
    Value,
    id_key,
    id_of,
)

NOW_MS = 1_700_000_000_000
#: Few values, so that filters meet documents.
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from(["a", "ab", None]),
    st.sampled_from(
        [
            0.5,
            -0.0,
            None,
            True,
            "",
            "a",
            "ab",
            "b",
            "x" * 1100,
            "x" * 1100 + "y",
            {"$numberDouble": "NaN"},
            {"$numberDecimal": "0.1"},
            {"$numberLong": "9007199254740993"},
            {"$date": "1969-12-31T23:59:59.999Z"},
            {"$minKey": 1},
            {"$maxKey": 1},
            {"$undefined": True},
            {"$regularExpression": {"pattern": "a", "options": ""}},
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["b", "b", "0"]), inner, max_size=2),
    ),
    max_leaves=3,
)
DOCUMENTS = st.fixed_dictionaries({}, optional={"a": VALUES, "b": VALUES})
PATHS = st.sampled_from(["a", "a", "a", "b", "b", "a.b", "a.0"])
PATTERNS = st.sampled_from(["^a", "^ab?", "^ab", "b", "^x", "^", "^a|b"])


def _test(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    comparisons = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
    return st.one_of(
        st.dictionaries(comparisons, values, min_size=1, max_size=2),
        st.builds(lambda v: {"$in": v}, st.lists(SCALARS, max_size=3)),
        st.builds(lambda v: {"$nin": v}, st.lists(SCALARS, max_size=2)),
        st.builds(lambda v: {"$exists": v}, st.booleans()),
        st.builds(lambda v: {"$regex": v}, PATTERNS),
        st.builds(lambda v: {"$not": {"$gt": v}}, SCALARS),
        st.builds(lambda v: {"$elemMatch": {"$gte": v}}, SCALARS),
        st.builds(lambda v: {"$elemMatch": {"b": v}}, SCALARS),
        st.builds(lambda v: {"$size": v}, st.integers(0, 2)),
        st.builds(lambda v: {"$all": v}, st.lists(SCALARS, min_size=1, max_size=2)),
    )


def _is_plain(value: object) -> bool:
    return not (isinstance(value, dict) and any(key.startswith("$") for key in value))


FILTERS = st.recursive(
    st.dictionaries(
        PATHS,
        st.one_of(SCALARS.filter(_is_plain), VALUES.filter(_is_plain), _test(SCALARS)),
        min_size=1,
        max_size=2,
    ),
    lambda inner: st.one_of(
        st.builds(lambda c: {"$and": c}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda c: {"$or": c}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda c: {"$nor": c}, st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=4,
)
INDEXES = st.lists(
    st.tuples(PATHS, st.sampled_from([1, -1])), min_size=1, max_size=3, unique_by=lambda f: f[0]
)


def value(plain: object) -> Value:
    return Value.parse(json.dumps(plain).encode())


def bodies(documents: list[dict[str, Any]]) -> list[bytes]:
    return [value({"_id": number, **document}).bson() for number, document in enumerate(documents)]


def parsed(plain: object) -> Filter | None:
    """Return the filter, or None for one that is refused, such as a regex beside `$gt`."""
    try:
        return Filter.parse(value(plain))
    except ValueError:
        return None


def entries_of(body: bytes, fields: list[tuple[str, int]]) -> list[bytes] | None:
    """Return the entries, or None when two arrays stand side by side."""
    try:
        return [key for _, key, _, _ in Definition(None, [(1, fields, False)]).entries(body)]
    except ValueError:
        return None


def check_superset(documents: list[dict[str, Any]], filter_text: object, fields: Any) -> None:
    query_filter = parsed(filter_text)
    if query_filter is None:
        return
    bounds = query_filter.bounds(fields)
    if bounds is None:
        return
    for body in bodies(documents):
        entries = entries_of(body, fields)
        if entries is None or not query_filter.matches(body, NOW_MS):
            continue
        inside = any(
            low <= key and (high is None or key < high)
            for key in entries
            for low, high in bounds.ranges
        )
        assert inside, (Value.from_bson(body).ejson(), filter_text, fields)


def check_order(
    documents: list[dict[str, Any]], filter_text: object, fields: Any, *, reverse: bool
) -> None:
    """Reading an index in order gives what sorting gives, or says that it cannot."""
    query_filter = parsed(filter_text)
    if query_filter is None:
        return
    bounds = query_filter.bounds(fields)
    equalities = bounds.equalities if bounds else 0
    rest = fields[equalities:]
    if not rest:
        return
    sort = Sort.parse(value([[path, -way if reverse else way] for path, way in rest]))
    direction = sort.direction(fields, equalities)
    assert direction == (-1 if reverse else 1)
    rows = []
    for body in bodies(documents):
        entries = entries_of(body, fields)
        if entries is None:
            return
        key = id_key(id_of(body))
        rows += [(key, 1, 0, 0, body, entry) for entry in entries]
    if bounds and restricts_sort(query_filter, fields, bounds) and any(row[5] == b"" for row in rows):
        return
    ranges = bounds.ranges if bounds else [(b"", None)]
    read = [
        row
        for row in rows
        if any(low <= row[5] and (high is None or row[5] < high) for low, high in ranges)
    ]
    read.sort(key=lambda row: row[0])
    read.sort(key=lambda row: row[5], reverse=reverse)
    every = {row[0]: (*row[:5], None) for row in rows}
    after: bytes | None = None
    for _ in range(20):
        sorted_afterwards = _selection(query_filter, sort, after)
        sorted_afterwards.feed(list(every.values()))
        in_order = _selection(query_filter, sort, after).by_index(fields, bounds, reverse)
        if in_order.feed(read) == "misplaced":
            return
        items, following, _ = sorted_afterwards.finish()
        same, other, _ = in_order.finish()
        assert same == items, (filter_text, fields, reverse)
        assert (other is None) == (following is None)
        if following is None:
            return
        after = following[0]


def _selection(query_filter: Filter, sort: Sort, after: bytes | None) -> Selection:
    return Selection(
        query_filter,
        sort,
        offset=0,
        limit=2,
        after=after,
        now_ms=NOW_MS,
        max_bytes=1 << 26,
        page_bytes=1 << 26,
    )


@settings(max_examples=400, deadline=None)
@given(st.lists(DOCUMENTS, min_size=1, max_size=5), FILTERS, INDEXES)
def test_every_match_has_an_entry_inside_the_bounds(
    documents: list[dict[str, Any]], filter_text: object, fields: list[tuple[str, int]]
) -> None:
    check_superset(documents, filter_text, fields)


@settings(max_examples=400, deadline=None)
@given(st.lists(DOCUMENTS, min_size=1, max_size=6), FILTERS, INDEXES, st.booleans())
@example(
    documents=[{"a": [], "b": []}],
    filter_text={"a": []},
    fields=[("a", 1), ("b", 1)],
    reverse=False,
)
@example(
    documents=[{"a": [1], "b": []}],
    filter_text={"a": [1]},
    fields=[("a", 1), ("b", 1)],
    reverse=False,
)
def test_an_index_read_in_order_agrees_with_sorting(
    documents: list[dict[str, Any]],
    filter_text: object,
    fields: list[tuple[str, int]],
    reverse: bool,  # noqa: FBT001
) -> None:
    check_order(documents, filter_text, fields, reverse=reverse)


@pytest.mark.long
@pytest.mark.timeout(1_800)
@settings(max_examples=50_000, deadline=None)
@given(st.lists(DOCUMENTS, min_size=10, max_size=20), FILTERS, INDEXES, st.booleans())
def test_bounds_and_orders_hold_for_a_million_pairs(
    documents: list[dict[str, Any]],
    filter_text: object,
    fields: list[tuple[str, int]],
    reverse: bool,  # noqa: FBT001
) -> None:
    check_superset(documents, filter_text, fields)
    check_order(documents, filter_text, fields, reverse=reverse)
