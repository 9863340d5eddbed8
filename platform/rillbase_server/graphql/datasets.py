"""The field of datasets: rows of a table, as fresh as requested. Uploads use REST."""

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

_QUERY = loaded("queries", "query")

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


@strawberry.type
class DatasetQueries:
    @strawberry.field(description="Query the rows of a dataset's table with a given freshness.")
    async def dataset_rows(self, info: Info, dataset: Dataset, query: Query) -> DatasetRows:
        call = InternalCall(
            _QUERY,
            "POST",
            f"/v1/datasets/{dataset}/query",
            {"dataset": dataset},
            exact_json(query),
            {"Content-Type": MEDIA_TYPE},
        )
        answer = cast("JsonObject", await info.context.call_data_plane(call))
        return DatasetRows(
            rows=cast("list[JSON]", answer["rows"]),
            state=int(str(answer["state"])),
            freshness_s=float(str(answer["freshness_s"])),
            read=cast("JSON", answer["read"]),
        )
