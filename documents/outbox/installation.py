"""The installation epoch: raised after a backup was restored.

A restored database uses transaction ids and versions once more that streams and clients know
already. Streams carry the epoch in their names and resume tokens in their contents, so nothing of
the time before is taken for something of the time after.
"""

from __future__ import annotations

from foundation.postgres import Statement

INSTALLATION = Statement("SELECT epoch FROM documents_installation")
RAISE = Statement(
    "UPDATE documents_installation SET epoch = epoch + 1, raised_at = clock_timestamp() "
    "RETURNING epoch"
)
