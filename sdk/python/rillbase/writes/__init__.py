"""Writes as API calls, and how they are sent."""
