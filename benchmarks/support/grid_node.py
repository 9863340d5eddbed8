"""A node of a grid over an empty database, so that no PostgreSQL is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from realtime.grid.launcher import new_holder
from realtime.grid.layout import NodeSpec
from realtime.grid.node import native_node

#: A binary copy without rows: signature, flags, no extension, end.
_EMPTY_COPY = b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"


def _no_documents(_: list[bytes], __: int, ___: int) -> Iterator[str | bytes]:
    yield "1:1:"
    yield _EMPTY_COPY


if __name__ == "__main__":
    native_node(NodeSpec.from_json(sys.argv[1]), new_holder(), _no_documents).run(os.getppid())
