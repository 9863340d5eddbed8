"""The data plane of documents: `/v1/collections/…` and `/v1/transactions`.

Each handler reads its request, asks the store, and answers. What holds for all calls (who, within
which limits) has happened before, in `data_plane.calls`.
"""
