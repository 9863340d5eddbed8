"""The SDKs, on their own and against a running server."""
