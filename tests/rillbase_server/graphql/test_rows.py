"""Plans answer what the library's executor answers, mistakes included."""

from __future__ import annotations

from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLField,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLString,
    execute,
    parse,
)
from hypothesis import given
from hypothesis import strategies as st

from rillbase_server.graphql.rows import READ, PlanningExecutor


def reading(kind: Any, name: str) -> GraphQLField:
    """Return a field that only reads, and counts how often the executor had to do it."""

    def resolve(source: dict[str, Any], _: object) -> Any:
        by_executor.append(name)
        return source.get(name)

    return GraphQLField(kind, resolve=resolve, extensions={READ: lambda source: source.get(name)})


by_executor: list[str] = []
PLACE = GraphQLObjectType(
    "LauncherDirectory",
    {"city": reading(GraphQLString, "city"), "rank": reading(GraphQLInt, "rank")},
)
ROW = GraphQLObjectType(
    "Row",
    {
        "title": reading(GraphQLString, "title"),
        "rank": reading(GraphQLNonNull(GraphQLInt), "rank"),
        "tags": reading(GraphQLList(GraphQLString), "tags"),
        "place": reading(PLACE, "place"),
        "places": reading(GraphQLList(GraphQLNonNull(PLACE)), "places"),
        "asked": GraphQLField(
            GraphQLString,
            {"word": GraphQLArgument(GraphQLString)},
            resolve=lambda source, _, word="": f"{word}{source.get('title')}",
        ),
    },
)
SCHEMA = GraphQLSchema(
    GraphQLObjectType(
        "Query",
        {
            "rows": GraphQLField(GraphQLList(ROW), resolve=lambda root, _: root),
            "row": GraphQLField(ROW, resolve=lambda root, _: root[0]),
        },
    )
)
PLANNED = """
{
  rows { __typename title rank tags place { city rank } places { city } }
  row { again: rank }
}
"""
PARTLY = """
query ($more: Boolean!) {
  rows { title asked(word: "so ") place @include(if: $more) { city } ...Rank }
  row { places { ... on Place { city } } }
}
fragment Rank on Row { rank }
"""

leaf = st.one_of(st.none(), st.integers(-3, 3), st.text(max_size=3), st.booleans(), st.floats())
place = st.one_of(leaf, st.fixed_dictionaries({}, optional={"city": leaf, "rank": leaf}))
rows = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "title": leaf,
            "rank": st.one_of(st.integers(-3, 3), leaf),
            "tags": st.one_of(leaf, st.lists(leaf, max_size=3)),
            "place": place,
            "places": st.one_of(leaf, st.lists(place, max_size=3)),
        },
    ),
    min_size=1,
    max_size=4,
)


def result_of(text: str, root: object, executor: type[Any] | None) -> tuple[object, list[object]]:
    result = execute(
        SCHEMA, parse(text), root, variable_values={"more": True}, executor_class=executor
    )
    errors = [error.formatted for error in getattr(result, "errors", None) or []]
    return getattr(result, "data", None), errors


@given(rows)
def test_plans_do_not_change_the_response(held: list[Any]) -> None:
    for text in (PLANNED, PARTLY):
        assert repr(result_of(text, held, PlanningExecutor)) == repr(result_of(text, held, None))


def test_rows_of_the_declared_shape_are_not_completed_field_by_field() -> None:
    good = {"title": "t", "rank": 1, "tags": ["a"], "place": {"city": "x"}, "places": [{}]}
    by_executor.clear()
    data, errors = result_of(PLANNED, [good] * 3, PlanningExecutor)
    assert by_executor == []
    assert errors == []
    assert data == result_of(PLANNED, [good] * 3, None)[0]


def test_a_row_of_another_shape_gets_an_error_at_its_path() -> None:
    data, errors = result_of("{ rows { rank } }", [{"rank": 1}, {"rank": "many"}], PlanningExecutor)
    assert data == {"rows": [{"rank": 1}, None]}
    assert [error["path"] for error in errors] == [["rows", 1, "rank"]]  # type: ignore[index]
