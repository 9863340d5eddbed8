"""How callers authenticate: keys, tokens, sessions and end users' JWTs."""
