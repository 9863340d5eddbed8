"""Topics over connections: subscriptions as a kind of their own, and their streams."""
