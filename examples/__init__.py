"""Small programs that show what Rillbase does."""
