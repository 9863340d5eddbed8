"""The catalogue of a shop for desks and accessories."""

from __future__ import annotations

import random

from documents.samples.sample import SampleCollection
from foundation.json_types import JsonObject

#: Kind, its tags, and the price of a plain one.
_KINDS = (
    ("Lamp", ("light", "desk"), 39),
    ("Chair", ("seating", "office"), 189),
    ("Desk", ("furniture", "office"), 349),
    ("Shelf", ("furniture", "storage"), 119),
    ("Notebook", ("paper", "writing"), 7),
    ("Pen", ("writing",), 3),
    ("Keyboard", ("computer", "desk"), 89),
    ("Headphones", ("computer", "audio"), 129),
    ("Mug", ("kitchen", "desk"), 12),
    ("Backpack", ("travel", "storage"), 79),
)
#: Line, factor on the price, material, one more tag.
_LINES = (
    ("Basic", 0.7, "plastic", "budget"),
    ("Oak", 1.6, "oak", "wood"),
    ("Birch", 1.3, "birch", "wood"),
    ("Steel", 1.4, "steel", "metal"),
    ("Studio", 2.1, "aluminium", "design"),
    ("Travel", 1.1, "canvas", "light-weight"),
    ("Junior", 0.8, "birch", "children"),
    ("Heritage", 2.8, "walnut", "wood"),
    ("Recycled", 0.9, "recycled plastic", "sustainable"),
    ("Limited", 3.5, "brass", "collectors"),
)
_COLOURS = ("white", "black", "sand", "forest", "sky", "coral")
_SEED = 2048

_DECLARATION: JsonObject = {
    "name": "products",
    "schema": {
        "type": "object",
        "required": ["name", "price", "stock"],
        "properties": {
            "name": {"type": "string"},
            "price": {"type": "number", "minimum": 0},
            "stock": {"bsonType": ["int", "long"], "minimum": 0},
        },
    },
    "access_rules": {"read": True},
    "indexes": [
        {"name": "by-price", "fields": [["price", 1]]},
        {"name": "by-tag", "fields": [["tags", 1], ["price", 1]]},
        {"name": "by-sku", "fields": [["sku", 1]], "unique": True},
    ],
}


def products() -> SampleCollection:
    """Return the data set."""
    choice = random.Random(_SEED)  # noqa: S311 -- the same everywhere
    documents: list[JsonObject] = []
    for kind, tags, price in _KINDS:
        for line, factor, material, tag in _LINES:
            sku = f"{kind[:2].upper()}-{line[:3].upper()}"
            documents.append(
                {
                    "_id": f"{line}-{kind}".lower(),
                    "sku": sku,
                    "name": f"{line} {kind}",
                    "price": _price(price * factor),
                    "tags": [*sorted({*tags, tag})],
                    "stock": choice.choice((0, 3, 12, 40, 150)),
                    "rating": {
                        "average": choice.randrange(25, 50) / 10,
                        "votes": choice.randrange(2, 900),
                    },
                    "details": {
                        "material": material,
                        "colours": [*sorted(choice.sample(_COLOURS, choice.randrange(1, 4)))],
                    },
                }
            )
    return SampleCollection(_DECLARATION, documents)


def _price(amount: float) -> JsonObject:
    """Return an exact price that ends in about 90 cents."""
    return {"$numberDecimal": f"{max(1, round(amount)) - 0.1:.2f}"}
