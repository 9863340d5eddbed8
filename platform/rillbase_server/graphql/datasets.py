"""The fields of datasets: rows of a table, or of an SQL statement. Uploads use REST."""

from __future__ import annotations

from typing import Annotated, cast

import strawberry
from strawberry.scalars import JSON

from analytics.api.loading import loaded
from data_plane.http.body import JSON as MEDIA_TYPE
from data_plane.internal_call import InternalCall
from foundation.api.rendering import exact_json
from foundation.json_types import JsonObject
from rillbase_server.graphql.context import Info

_QUERY, _EXECUTE = loaded("queries", "query"), loaded("sql", "execute_whole")

Dataset = Annotated[str, strawberry.argument(description="The dataset's name.")]
Query = Annotated[JSON, strawberry.argument(description="As the body of the REST call.")]


@strawberry.type(description="Rows of a table, with their freshness.")
class DatasetRows:
    rows: list[JSON]
    state: int = strawberry.field(
        description="The state of the dataset from which the rows were read."
    )
    freshness_s: float = strawberry.field(description="Maximum age of that state.")
    read: JSON = strawberry.field(description="What was read to answer the query.")


@strawberry.type(description="A column of a statement's result.")
class StatementColumn:
    name: str
    type: str = strawberry.field(description="Its type in DuckDB.")


@strawberry.type(description="The result of an SQL statement, from one state of all tables.")
class StatementRows:
    rows: list[JSON]
    columns: list[StatementColumn]
    state: int = strawberry.field(
        description="The state of the dataset from which the rows were read."
    )
    freshness_s: float = strawberry.field(description="Maximum age of that state.")
    engine: str = strawberry.field(description="What has executed it: `duckdb` or `spark`.")
    truncated: bool = strawberry.field(description="Whether the limit has cut off rows.")


@strawberry.type
class DatasetQueries:
    @strawberry.field(description="Query the rows of a dataset's table with a given freshness.")
    async def dataset_rows(self, info: Info, dataset: Dataset, query: Query) -> DatasetRows:
        answer = await _post(info, dataset, "query", query)
        return DatasetRows(
            rows=cast("list[JSON]", answer["rows"]),
            state=int(str(answer["state"])),
            freshness_s=float(str(answer["freshness_s"])),
            read=cast("JSON", answer["read"]),
        )

    @strawberry.field(description="Execute an SQL statement over a dataset's tables.")
    async def dataset_sql(self, info: Info, dataset: Dataset, statement: Query) -> StatementRows:
        answer = await _post(info, dataset, "sql", statement)
        columns = cast("list[dict[str, str]]", answer["columns"])
        return StatementRows(
            rows=cast("list[JSON]", answer["rows"]),
            columns=[StatementColumn(name=one["name"], type=one["type"]) for one in columns],
            state=int(str(answer["state"])),
            freshness_s=float(str(answer["freshness_s"])),
            engine=str(answer["engine"]),
            truncated=bool(answer["truncated"]),
        )


async def _post(info: Info, dataset: str, call: str, body: JSON) -> JsonObject:
    """Make a call of a dataset, whose name is that of its REST call."""
    request = InternalCall(
        _EXECUTE if call == "sql" else _QUERY,
        "POST",
        f"/v1/datasets/{dataset}/{call}",
        {"dataset": dataset},
        exact_json(body),
        {"Content-Type": MEDIA_TYPE},
    )
    return cast("JsonObject", await info.context.call_data_plane(request))
