"""The data plane of topics: publish, subscribe, look."""
