"""Drivers move through a city and are notified of incidents around them."""
