"""The control plane's operations, shared by the REST and GraphQL APIs."""
