"""What the control plane does, apart from how it is asked: REST and GraphQL call the same."""
