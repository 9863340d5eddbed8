"""Sources: collections whose documents come from a table of a tenant's PostgreSQL."""
