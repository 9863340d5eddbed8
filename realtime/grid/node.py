"""One node: the native loop, and the process around it.

    python -m realtime.grid.node '{"installation": 1, …}' PARENT HOLDER

The loop needs no Django. It ends on request, or when the process that started this one has ended,
since it would then be unsupervised.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

from foundation.environment import environment
from realtime.events.layer import SOURCE
from realtime.grid.documents import DocumentRead, reader_of
from realtime.grid.layout import NodeSpec
from rillbase_native import GridNode


def native_node(node: NodeSpec, holder: str, read: DocumentRead | None = None) -> GridNode:
    """Return the native loop of a node, not running yet. `read` supplies the documents, by default
    those of the node's backend.
    """
    return GridNode(
        url=environment().events,
        prefix=node.prefix,
        epoch=node.epoch,
        query_partition=node.query_partition,
        write_partition=node.write_partition,
        write_partitions=node.write_partitions,
        node=node.name,
        holder=holder,
        function=SOURCE.read_bytes(),
        documents=read or reader_of(node.backend),
    )


def run_as_task(arguments: tuple[str, str]) -> None:
    """Run a node, under the holder's name, while this task of a cluster runs."""
    node, holder = arguments
    native_node(NodeSpec.from_json(node), holder).run(os.getppid())


def main(node: str, parent: int, holder: str) -> None:
    """Run a node until a signal ends it. The parent passes its pid, since it may have died before
    this process could read it.
    """
    native = native_node(NodeSpec.from_json(node), holder)

    def stop(_: int, __: FrameType | None) -> None:
        native.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    # Handlers run between two steps of this thread's own code, so the loop needs another thread.
    running = threading.Thread(
        target=native.run, args=(parent,), name=f"node:{NodeSpec.from_json(node).name}"
    )
    running.start()
    running.join()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
