"""Drivers move through a city and are told of incidents around them."""
