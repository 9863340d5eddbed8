"""The connection table of a uvicorn server."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from uvicorn.server import ServerState

from foundation.environment import environment
from rillbase_server.transport import allocator
from rillbase_server.transport.connection_table import ConnectionTable
from rillbase_server.transport.transport_limits import TransportLimits

_tables: WeakKeyDictionary[ServerState, ConnectionTable] = WeakKeyDictionary()


def table_of(state: ServerState) -> ConnectionTable:
    """Return the table, which is created for the first connection."""
    table = _tables.get(state)
    if table is None:
        allocator.return_large_blocks()
        table = _tables[state] = ConnectionTable(TransportLimits.of(environment()))
    return table
