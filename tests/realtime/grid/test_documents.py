"""A filter node receives the documents of its write partition."""

from __future__ import annotations

from realtime.grid.documents import read
from rillbase_native import Value, id_key, write_partition
from tests.documents.collection import make_collection


def test_a_document_is_read_for_its_write_partition_and_for_no_other(server: str) -> None:
    things, partitions = make_collection(server), 3
    names = [f"document-{number}" for number in range(20)]
    things.insert_many([{"_id": name} for name in names])
    copies = [
        b"".join(
            block
            for block in read([things.collection.id.bytes], partition, partitions)
            if isinstance(block, bytes)
        )
        for partition in range(partitions)
    ]
    for name in names:
        key = id_key(Value.parse(b'"%b"' % name.encode()))
        assert [key in copy for copy in copies] == [
            partition == write_partition(key, partitions) for partition in range(partitions)
        ]
