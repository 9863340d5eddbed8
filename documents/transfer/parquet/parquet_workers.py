"""The workers that read and write Parquet files."""

from data_plane.file_workers import FileWorkers
from foundation.errors import InvalidBody

workers = FileWorkers("parquet", "documents.transfer.parquet.worker:work", "file", InvalidBody)
