"""How callers prove who they are: keys, tokens, sessions and end users' JWTs."""
