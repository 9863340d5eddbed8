"""Documents and queries are in the partitions that every implementation agrees on."""

from __future__ import annotations

from rillbase_native import query_partition, write_partition
from tests.partition_vectors import vectors


def test_documents_are_in_the_write_partitions_of_the_test_vectors() -> None:
    documents = vectors("document")
    assert documents
    for vector in documents:
        assert write_partition(vector.name, vector.partitions) == vector.partition


def test_queries_are_in_the_query_partitions_of_the_test_vectors() -> None:
    queries = vectors("query")
    assert queries
    for vector in queries:
        assert query_partition(vector.name, vector.partitions) == vector.partition
