"""Converts rows, with columns as text in PostgreSQL's format, to documents."""
