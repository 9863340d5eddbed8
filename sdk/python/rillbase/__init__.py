"""Rillbase for Python: documents, and live queries.

    with Client("http://127.0.0.1:8080", key="rbk_…") as db:
        for snapshot in db.collection("todos").where("done", "==", False).sort("rank").watch():
            print(snapshot.documents)

`AsyncClient` is the same for `asyncio`.
"""

from rillbase.aggregates import Added, AsyncAggregate, RowQuery, Rows
from rillbase.aio import AsyncClient, AsyncCollection
from rillbase.async_query import AsyncQuery
from rillbase.connection import ConnectionState
from rillbase.datasets import (
    AsyncDataset,
    SqlRows,
    SqlStatement,
    TableQuery,
    TableRows,
    Upload,
)
from rillbase.envelope import Envelope, Many
from rillbase.errors import (
    CallTimeout,
    ClientClosed,
    ConnectionLost,
    ErrorPlace,
    OutcomeUnknown,
    QueueFailed,
    RillbaseError,
    ServerError,
    TokenUnavailable,
)
from rillbase.live import Result, Snapshot
from rillbase.options import Options
from rillbase.shapes import Document, State
from rillbase.sync import Aggregate, Client, Collection, Dataset, Later, Query
from rillbase.values import MAX, MIN, Binary, ObjectId, RegularExpression, Timestamp
from rillbase.view import Change, Item
from rillbase.writes.steps import Steps, Transaction

__all__ = [
    "MAX",
    "MIN",
    "Added",
    "Aggregate",
    "AsyncAggregate",
    "AsyncClient",
    "AsyncCollection",
    "AsyncDataset",
    "AsyncQuery",
    "Binary",
    "CallTimeout",
    "Change",
    "Client",
    "ClientClosed",
    "Collection",
    "ConnectionLost",
    "ConnectionState",
    "Dataset",
    "Document",
    "Envelope",
    "ErrorPlace",
    "Item",
    "Later",
    "Many",
    "ObjectId",
    "Options",
    "OutcomeUnknown",
    "Query",
    "QueueFailed",
    "RegularExpression",
    "Result",
    "RillbaseError",
    "RowQuery",
    "Rows",
    "ServerError",
    "Snapshot",
    "SqlRows",
    "SqlStatement",
    "State",
    "Steps",
    "TableQuery",
    "TableRows",
    "Timestamp",
    "TokenUnavailable",
    "Transaction",
    "Upload",
]
