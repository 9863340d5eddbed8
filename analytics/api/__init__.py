"""Data-plane calls of datasets."""
