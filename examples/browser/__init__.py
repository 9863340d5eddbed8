"""A page with a live query: ideas that people vote on, in as many windows as you like."""
