"""The data plane of aggregates: events come in, queries are answered."""
