"""Rillbase for Python: documents, and queries that stay up to date.

    with Client("http://127.0.0.1:8080", key="rbk_…") as db:
        for snapshot in db.collection("todos").where("done", "==", False).sort("rank").watch():
            print(snapshot.documents)

`AsyncClient` is the same for `asyncio`.
"""

from rillbase.aggregates import Added, AsyncAggregate, RowQuery, Rows
from rillbase.aio import AsyncClient, AsyncCollection, AsyncQuery, Envelope, Many
from rillbase.errors import CallTimeout, ConnectionLost, ErrorPlace, RillbaseError, ServerError
from rillbase.live import Result, Snapshot
from rillbase.shapes import Document, State
from rillbase.sync import Aggregate, Client, Collection, Query
from rillbase.values import MAX, MIN, Binary, ObjectId, RegularExpression, Timestamp
from rillbase.view import Change, Item

__all__ = [
    "MAX",
    "MIN",
    "Added",
    "Aggregate",
    "AsyncAggregate",
    "AsyncClient",
    "AsyncCollection",
    "AsyncQuery",
    "Binary",
    "CallTimeout",
    "Change",
    "Client",
    "Collection",
    "ConnectionLost",
    "Document",
    "Envelope",
    "ErrorPlace",
    "Item",
    "Many",
    "ObjectId",
    "Query",
    "RegularExpression",
    "Result",
    "RillbaseError",
    "RowQuery",
    "Rows",
    "ServerError",
    "Snapshot",
    "State",
    "Timestamp",
]
