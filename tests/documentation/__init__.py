"""The documentation: what it shows is what happens, and its links lead somewhere."""
