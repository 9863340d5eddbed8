"""Declare, show, pause and remove sources."""
