"""A list of tasks that everyone can read and change, for a first app."""

from __future__ import annotations

import datetime

from documents.samples.sample import SampleCollection
from foundation.json_types import JsonObject

#: The newest last.
_TITLES = (
    "Subscribe to a query",
    "Change a task in the console",
    "Watch every window update",
)

_DECLARATION: JsonObject = {
    "name": "tasks",
    "schema": {
        "type": "object",
        "required": ["title", "done", "created"],
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 200},
            "done": {"type": "boolean"},
            "created": {"bsonType": "date"},
        },
    },
    "access_rules": {"read": True, "create": True, "update": True, "delete": False},
}


def tasks() -> SampleCollection:
    """Return the data set."""
    now = datetime.datetime.now(datetime.UTC)
    documents = [_task(number, title, now) for number, title in enumerate(_TITLES)]
    return SampleCollection(_DECLARATION, documents)


def _task(number: int, title: str, now: datetime.datetime) -> JsonObject:
    created = now - datetime.timedelta(minutes=len(_TITLES) - number)
    return {
        "_id": f"task-{number + 1}",
        "title": title,
        "done": False,
        "created": {"$date": created.strftime("%Y-%m-%dT%H:%M:%SZ")},
    }
