"""Topics over connections: their subscription kind and their event streams."""
