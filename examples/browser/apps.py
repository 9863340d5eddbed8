"""The applications: their collections, and the initial documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: Rules for a playground: everyone may do what the schema allows.
EVERYTHING: Mapping[str, bool] = {"read": True, "create": True, "update": True, "delete": True}


@dataclass(frozen=True)
class App:
    """One application: a folder with a page, and a collection."""

    name: str
    invitation: str
    declaration: Mapping[str, Any]
    samples: Callable[[], Sequence[Mapping[str, Any]]]

    @property
    def folder(self) -> Path:
        return HERE / self.name

    @property
    def collection(self) -> str:
        return str(self.declaration["name"])


def text(longest: int) -> Mapping[str, Any]:
    """A schema for a non-empty text."""
    return {"type": "string", "minLength": 1, "maxLength": longest}


def record(properties: Mapping[str, object]) -> Mapping[str, Any]:
    """A schema for documents with all these fields."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _ideas() -> Sequence[Mapping[str, Any]]:
    ideas = {
        "Dark mode for the kitchen": 3,
        "Elevator that knows where I want to go": 2,
        "Four-day week": 8,
        "A plant for every desk": 5,
    }
    return [{"title": title, "votes": votes} for title, votes in ideas.items()]


def _messages() -> Sequence[Mapping[str, Any]]:
    messages = [
        ("general", "Ada", "Good morning! The new espresso machine is here."),
        ("general", "Linus", "Finally. Which floor?"),
        ("general", "Ada", "Third. Next to the window with the view."),
        ("kitchen", "Grace", "Who takes over the dishwasher this week?"),
        ("weekend", "Linus", "Anyone up for a hike on Saturday?"),
    ]
    begin = datetime.now(UTC) - timedelta(minutes=len(messages))
    return [
        {"room": room, "author": author, "text": words, "at": date(begin + timedelta(minutes=n))}
        for n, (room, author, words) in enumerate(messages)
    ]


def date(moment: datetime) -> Mapping[str, str]:
    """Return a date as Extended JSON."""
    return {"$date": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


IDEAS = App(
    name="ideas",
    invitation="in two windows side by side, and vote in either one",
    declaration={
        "name": "ideas",
        "schema": record({"title": text(80), "votes": {"type": "number"}}),
        "access_rules": EVERYTHING,
        "indexes": [{"name": "by-votes", "fields": [["votes", -1]]}],
    },
    samples=_ideas,
)

CHAT = App(
    name="chat",
    invitation="in two windows side by side, and chat with yourself",
    declaration={
        "name": "messages",
        "schema": record(
            {
                "room": {"enum": ["general", "kitchen", "weekend"]},
                "author": text(30),
                "text": text(500),
                "at": {"bsonType": "date"},
            }
        ),
        # Messages cannot be changed or deleted.
        "access_rules": {"read": True, "create": True, "update": False, "delete": False},
        "indexes": [{"name": "by-room", "fields": [["room", 1], ["at", -1]]}],
    },
    samples=_messages,
)

SHOP = App(
    name="shop",
    invitation="and watch; customers arrive as long as this runs",
    declaration={
        "name": "orders",
        "schema": record(
            {
                "product": text(60),
                "city": text(60),
                "total": {"type": "number", "minimum": 0},
                "state": {"enum": ["new", "packed", "shipped"]},
                "at": {"bsonType": "date"},
            }
        ),
        # The page may only advance an order: customers are simulated elsewhere.
        "access_rules": {"read": True, "create": False, "update": True, "delete": False},
        "indexes": [
            {"name": "by-time", "fields": [["at", -1]]},
            {"name": "by-state", "fields": [["state", 1], ["total", -1]]},
        ],
    },
    samples=list,
)

APPS: Mapping[str, App] = {app.name: app for app in (IDEAS, CHAT, SHOP)}
