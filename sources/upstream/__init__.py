"""The database of a source: how it is reached, what it reports, and what is created in it."""
