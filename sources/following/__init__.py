"""The process that follows tables: copies them once, then applies what is committed to them."""
