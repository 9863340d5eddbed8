"""What every REST view shares: bodies, problems, cursors, preconditions, idempotency."""
