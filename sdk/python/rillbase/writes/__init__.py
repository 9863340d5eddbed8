"""Writes: as calls of the API, and how they are sent."""
