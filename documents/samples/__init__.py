"""Sample data sets: small collections that a person can try queries and subscriptions on.

tasks     what the quick starts show: everyone can read and change them
todos     lists of a few people: access rules by owner, a sort by rank, a TTL
people    those people: what todos refer to
cities    large cities of the world: a place, a population, a country
products  a shop's catalogue: prices, tags, stock, nested details

Each is declared as a caller would declare it and written through `documents.store`. Generated
values come from a fixed seed, so every installation has the same ones.
"""

from documents.samples.load import load_samples

__all__ = ["load_samples"]
