"""The event layer's function appends entries to the streams from which the grid's nodes read
them.
"""

from __future__ import annotations

import pytest

from documents.outbox.entries import Image
from documents.outbox.events import AppendVerdict, EntryGroup, EventLayer
from tests.documents.outbox.streams import Streams
from tests.documents.outbox.test_events import entry, installed
from tests.own_valkey import OwnValkey
from tests.partition_vectors import vectors


@pytest.mark.parametrize("count", sorted({vector.partitions for vector in vectors("document")}))
async def test_entries_are_in_the_write_partitions_of_the_test_vectors(
    events: EventLayer, valkey: OwnValkey, count: int
) -> None:
    documents = [vector for vector in vectors("document") if vector.partitions == count]
    status = await installed(events, f"1:{count}")
    groups = [
        EntryGroup([(vector.hash, entry(version))], [vector.hash])
        for version, vector in enumerate(documents)
    ]
    assert (await events.append(status.time_us, None, groups)).verdict is AppendVerdict.OK
    with valkey.client() as client:
        streams = Streams(client, partitions=count)
        entries = {
            entry.content.version: (partition, entry.partitions)
            for partition in range(count)
            for entry in streams.read(partition)
            if isinstance(entry.content, Image)
        }
    assert entries == {
        version: (vector.partition, (vector.partition,)) for version, vector in enumerate(documents)
    }
