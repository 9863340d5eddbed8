"""The data plane of topics: publish, subscribe, list."""
