"""Tables of the control plane. Documents themselves are rows that are accessed only with SQL."""

from documents.models.collection import Collection
from documents.models.collection_move import CollectionMove
from documents.models.import_job import ImportJob
from documents.models.index import Index

__all__ = ["Collection", "CollectionMove", "ImportJob", "Index"]
