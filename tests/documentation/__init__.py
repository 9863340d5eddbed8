"""The documentation: its examples work as shown, and its links are valid."""
