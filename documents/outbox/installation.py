"""The installation epoch: raised after a backup was restored.

A restored database reuses transaction ids and versions that streams and clients already know. The
names of streams and the contents of resume tokens include the epoch, so nothing from before the
restore is mistaken for something after it.
"""

from __future__ import annotations

from foundation.postgres import Statement

INSTALLATION = Statement("SELECT epoch FROM documents_installation")
RAISE = Statement(
    "UPDATE documents_installation SET epoch = epoch + 1, raised_at = clock_timestamp() "
    "RETURNING epoch"
)
