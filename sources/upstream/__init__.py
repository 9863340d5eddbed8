"""The database that a source is in: how it is reached, what it says, and what is made in it."""
