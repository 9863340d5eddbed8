"""To-do lists of four people. Signed-in end users can only read and change their own."""

from __future__ import annotations

import datetime
import random

from documents.samples.sample import SampleCollection
from foundation.json_types import JsonObject

_OWNERS = ("ada", "grace", "linus", "margaret")
_VERBS = ("Call", "Write to", "Thank", "Visit", "Remind", "Invite", "Pay", "Ask")
_WHOM = (
    "the bank",
    "grandmother",
    "the landlord",
    "the dentist",
    "the neighbours",
    "the library",
    "the school",
    "the plumber",
    "the travel agency",
    "the team",
)
_TAGS = ("home", "work", "errand", "someday", "urgent")
_SEED = 1984
_OWN: JsonObject = {"owner": {"$auth": "sub"}}

_DECLARATION: JsonObject = {
    "name": "todos",
    "schema": {
        "type": "object",
        "required": ["title", "owner", "done", "rank"],
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 200},
            "owner": {"type": "string"},
            "done": {"type": "boolean"},
            "rank": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    },
    "access_rules": {"read": _OWN, "create": _OWN, "update": _OWN, "delete": _OWN},
    "indexes": [
        {"name": "by-owner", "fields": [["owner", 1], ["rank", 1]]},
        {"name": "by-tag", "fields": [["tags", 1]]},
    ],
    "ttl": {"field": "done_at", "after_s": 30 * 24 * 3600},
}


def todos() -> SampleCollection:
    """Return the data set. Due dates are close to the current time."""
    choice = random.Random(_SEED)  # noqa: S311 -- the same everywhere
    today = datetime.datetime.now(datetime.UTC).replace(hour=9, minute=0, second=0, microsecond=0)
    titles = [f"{verb} {whom}" for verb in _VERBS for whom in _WHOM]
    choice.shuffle(titles)
    documents = [_todo(choice, number, title, today) for number, title in enumerate(titles)]
    return SampleCollection(_DECLARATION, documents)


def _todo(choice: random.Random, number: int, title: str, today: datetime.datetime) -> JsonObject:
    done = choice.random() < 0.25  # noqa: PLR2004 -- a quarter is done
    todo: JsonObject = {
        "_id": f"todo-{number:03d}",
        "title": title,
        "owner": _OWNERS[number % len(_OWNERS)],
        "rank": number // len(_OWNERS) + 1,
        "done": done,
        "tags": [*sorted(choice.sample(_TAGS, choice.randrange(3)))],
        "due": _date(today + datetime.timedelta(days=choice.randrange(-3, 30))),
    }
    if done:
        todo["done_at"] = _date(today)
    return todo


def _date(moment: datetime.datetime) -> JsonObject:
    return {"$date": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}
