"""The steps in words: short sentences for people who have never looked behind the API."""

from __future__ import annotations

from collections.abc import Sequence

from foundation.json_types import JsonObject, JsonValue

#: The whole, by verdict.
SUMMARIES = {
    "told": "The client has taken the event.",
    "coalesced": "The client was told of what became of several changes together.",
    "result": "The client was sent a whole result that has it.",
    "in_result": "The client got it with the result that its subscription began with.",
    "no_match": "The document does not match the query's filter, so there is no event.",
    "hidden": "The access rule does not let this user see the document, so there is no event.",
    "rules_changed": "The access rules have changed; the subscription is being judged anew.",
    "outside_window": "The document matches and lies outside the window that the client watches.",
    "grouped": "The document counts in a row of groups; the client is told of rows that change.",
    "renewing": "The window is being read again; the client hears of it after that.",
    "not_published": "The write is committed and has not been published yet.",
    "not_watched": "The node that would match the write does not watch the query at the moment.",
    "batch": "The write waits for the other parts of its atomic batch.",
    "starting": "The subscription has not begun to be live yet.",
    "outrun": "A later version of the document came first, and the client was told of that one.",
    "muted": "The client asked not to hear of this kind of change.",
    "held": "The client will be told together with later changes: it is throttled, or slow.",
    "not_taken": "The event was sent and the client has not taken it yet.",
    "dropped": "The client was too slow or lost its place: it was given a new result instead.",
    "waiting": "The client has not been given its first result yet.",
    "under_way": "Nothing stands in its way; the server has not heard of it yet.",
    "forgotten": "It is too long ago: the server no longer remembers what it told the client then.",
    "no_document": "There is no such document, and none is remembered.",
    "no_such_version": "The document has not reached this version.",
    "would_match": "A subscriber like this has the document in its result.",
    "deleted": "The document is deleted: whoever had it in a result was told so.",
    "unclear": "What is remembered does not tell what became of it.",
}

TITLES = {
    "write": "Written",
    "publication": "Published",
    "matching": "Matched with live queries",
    "filter": "The query's filter",
    "rule": "The access rule",
    "window": "Sort and window",
    "hub": "The subscriber's server",
    "delivery": "Sent to the client",
}

NEVER_WRITTEN = "No document with this `_id` is in the collection, and none was lately."
NOT_YET_WRITTEN = "The newest version is {newest}; there is no version {version}."
WRITTEN = "Version {version} was committed."
DELETED = "The document was deleted; that is version {version}."
LONG_AGO = "Later versions have replaced it, and when it was written is no longer known."

PUBLISHED = "Its after-image stands in the write stream of its partition."
PUBLISHED_BEFORE = "It was published; the write stream keeps entries for seconds and has let it go."
PUBLISHED_SURELY = "It was published, since the grid told of it."
PUBLISHED_LONG_AGO = "That is so long ago that the outbox has let go of it: it was published then."
NOT_PUBLISHED = "It waits in the outbox for the relay, which publishes what writers could not."

WATCHED = "The filter node of the partition watches the query."
NOT_WATCHED = "The filter node of the partition does not watch the query yet, or not now."

WOULD_BE_WATCHED = "Nobody need watch the query: it is looked at as if somebody did."
WOULD_HOLD = "The result of the query has the document."

GROUPED = "The query shows rows that stand for many documents each, and this one is part of a row."

HOLDS = {"filter": "It matches.", "rule": "The rule lets the user see it."}
HOLDS_NO_MORE = {
    "filter": "It matches no longer, so it leaves the result.",
    "rule": "The rule hides it from now on, so it leaves the result.",
}
HOLDS_NOT = {"filter": "It does not match.", "rule": "The rule hides it from this user."}
NOR_BEFORE = "The version before was not in the result either, so nothing changed for the client."
DENIED = "Users like this may read nothing: there is no rule, or it names a claim that they lack."
NOTHING_LEFT = "A deletion has no content to match: it concerns whoever had the document."
MATCHED_SURELY = "It concerned the query, since the grid told of it; its content is gone by now."
CONTENT_GONE = "Later versions have replaced its content, so this cannot be worked out any more."
RULES_CHANGED = "The write was made under newer access rules than those of the subscription."

IN_WINDOW = "It changed the window."
AT_PLACE = "It is at place {place} of the order, inside the window."
RENEWING = "The sort node has lost sight of the window's end and has the query read again."
OUTSIDE = {
    "before": "In the order of the sort it comes before the window, which shows places "
    "{first} to {last}: `offset` passes it over.",
    "behind": "In the order of the sort it comes behind the window, which shows places "
    "{first} to {last}: `limit` cuts it off.",
}
NEVER_IN_WINDOW = "The document was not in the window when it was deleted."
WINDOW_UNKNOWN = "Where it stood beside the window then is not known."

SHOWN = {
    "add": "The document came into the result.",
    "change": "The document changed within the result.",
    "changeIndex": "The document moved within the result.",
    "remove": "The document left the result.",
}
WAITS_FOR_BATCH = "It is here and is held until all parts of its atomic batch are."
IN_ROWS = "The rows that were read when the subscription began had this version already."
OUTRUN = "Version {version} was here first, and older ones are passed over."
STARTING = "The query's nodes have not all taken it in yet."
FORGOTTEN = "The server's memory of recent changes has let go of that time."
NOTHING_SHOWN = (
    "The server showed nothing of this version. Its content is gone, so that nobody can say why; "
    "most often it did not match."
)
NEVER_HELD = "The document was not in the result when it was deleted."
NOT_HEARD = "The server has not heard of the change, or it has just begun to remember."

TOLD = {
    "events": "The client was told by {events}.",
    "together": "The client was told by {events}, together with other changes.",
    "resumed": "The client had been away and was told by {events} when it came back.",
    "result": "The client was sent the whole result.",
    "muted": "The client's `options.events` leave this kind of change out.",
    "anew": "What waited for the client was dropped, and it begins anew ({reason}).",
}
UNDONE = "It was put together with later changes that undid it: nothing was left to tell."
DELIVERY = {
    "taken": "Its connection has taken it.",
    "handed": "Its connection has not sent it yet, with {count} before it.",
    "waiting": "It waits behind {count} others that the client has not taken.",
    "dropped": "It was dropped before the client took it, in favour of a new result.",
    "none": "",
}
UNTOLD = {
    "held": "It is put together with later changes, until the throttle or the client allows more.",
    "waiting": "The client waits for its result, which will have it.",
    "cut_off": "The client does not read, and memory is short: it is cut off until it does.",
    "forgotten": "What the client was told then has been forgotten.",
    "before": "The client was not there yet.",
}
#: State and verdict of the last step for each of these.
UNTOLD_VERDICTS = {
    "held": ("waiting", "held"),
    "waiting": ("waiting", "waiting"),
    "cut_off": ("stopped", "dropped"),
    "forgotten": ("unknown", "forgotten"),
    "before": ("stopped", "in_result"),
}

_FOUND_BY = {
    "everything": "The query takes every document.",
    "never": "No document can match the query.",
    "residual": "Nothing in the query can be indexed, so its filter is asked about every write.",
    "equality": "The query waits at {paths} for equal values",
    "range": "The query waits at {paths} for values within bounds",
    "literal": "The query waits at {paths} for text with a piece of its pattern",
    "text": "The query waits for documents with a term of its search",
    "geo": "The query waits at {paths} for places near its own",
    "existence": "The query waits at {paths} for values that are there, or of a type",
    "mixed": "The query waits at {paths} for several kinds of values",
}
_WHOLE = ("everything", "never", "residual")


def reach(kind: str, paths: Sequence[str], *, reached: bool) -> str:
    """Say how the index leads the document to the query, or past it."""
    text = _FOUND_BY[kind].format(paths=", ".join(f"`{path}`" for path in paths))
    if kind in _WHOLE:
        return text
    return text + (
        ", and the document has one: its filter is asked."
        if reached
        else ", and the document has none: the filter need not be asked."
    )


def sentences(explanation: JsonObject) -> str:
    """Return the sentences of the tests that decided."""
    found = list(_deciding(explanation["reason"]))
    if len(found) <= MOST_SENTENCES:
        return " ".join(found)
    return " ".join(found[:MOST_SENTENCES]) + f" And {len(found) - MOST_SENTENCES} more."


MOST_SENTENCES = 5


def _deciding(reason: JsonValue) -> list[str]:
    if not isinstance(reason, dict) or reason["decides"] is not True:
        return []
    parts = reason["parts"]
    if isinstance(parts, list) and parts:
        return [sentence for part in parts for sentence in _deciding(part)]
    return [str(reason["sentence"])]
