"""The data plane of documents: `/v1/collections/…` and `/v1/transactions`.

Each handler reads its request, calls the store, and responds. Authentication and rate limits, which
apply to all calls, come first, in `data_plane.calls`.
"""
