"""The data plane of aggregates: adding events, and queries."""
