"""The tables of datasets: definitions, and which file holds which uploads."""

from analytics.models.dataset import Dataset
from analytics.models.run import Run
from analytics.models.stored_file import FileStage, StoredFile
from analytics.models.upload import Upload

__all__ = ["Dataset", "FileStage", "Run", "StoredFile", "Upload"]
