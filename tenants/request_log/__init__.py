"""The request log: a tenant's requests of the last day, shown to its members."""
