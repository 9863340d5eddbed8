"""Sources: collections whose documents come from a table of somebody's own PostgreSQL."""
