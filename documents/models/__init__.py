"""What the control plane keeps. Documents themselves are rows that only SQL sees."""

from documents.models.collection import Collection
from documents.models.import_job import ImportJob
from documents.models.index import Index

__all__ = ["Collection", "ImportJob", "Index"]
