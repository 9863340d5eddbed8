"""The steps in words: short sentences for users who do not know the internals."""

from __future__ import annotations

from collections.abc import Sequence

from foundation.json_types import JsonObject, JsonValue

#: The summary, by verdict.
SUMMARIES = {
    "told": "The client has received the event.",
    "coalesced": "The client received one event for several combined changes.",
    "result": "The client received a complete result that contains the change.",
    "in_result": "The change was part of the initial result of the subscription.",
    "no_match": "The document does not match the query's filter, so there is no event.",
    "hidden": "The access rule does not allow this user to read the document, so there is no "
    "event.",
    "rules_changed": "The access rules have changed; the subscription is being checked against "
    "the new ones.",
    "outside_window": "The document matches but is outside the window of the query.",
    "grouped": "The document is part of a group; the client receives events for rows that change.",
    "renewing": "The window is being read again; the client receives the change afterwards.",
    "not_published": "The write is committed but has not been published yet.",
    "not_watched": "The node that would match the write is not ready for the query at the moment.",
    "batch": "The write waits for the other parts of its atomic batch.",
    "starting": "The subscription is not live yet.",
    "outrun": "A later version of the document arrived first, and the client received that one.",
    "muted": "The client's options exclude this kind of change.",
    "held": "The change will be sent together with later ones, because the client is throttled or "
    "slow.",
    "not_taken": "The event was sent, but the client has not received it yet.",
    "dropped": "The client was too slow or lost its position, so it received a new result instead.",
    "waiting": "The client has not received its first result yet.",
    "under_way": "Nothing prevents delivery; the server has not received the change yet.",
    "forgotten": "The change is too old: the server no longer knows what it sent to the client "
    "then.",
    "no_document": "The document does not exist, and no deletion of it is known.",
    "no_such_version": "The document has not reached this version.",
    "would_match": "A subscriber like this has the document in its result.",
    "deleted": "The document was deleted; every subscriber that had it in its result was notified.",
    "unclear": "The server's records do not show what happened to the change.",
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

NEVER_WRITTEN = "The collection has no document with this `_id` and had none recently."
NOT_YET_WRITTEN = "The newest version is {newest}; version {version} does not exist yet."
WRITTEN = "Version {version} was committed."
DELETED = "The document was deleted in version {version}."
LONG_AGO = "Later versions have replaced this one; the time of its commit is no longer known."

PUBLISHED = "Its after-image is in the write stream of its partition."
PUBLISHED_BEFORE = (
    "It was published. The write stream retains entries for seconds and has already dropped this "
    "one."
)
PUBLISHED_SURELY = "It was published, because the grid reported it."
PUBLISHED_LONG_AGO = "It was published, but so long ago that the outbox no longer contains it."
NOT_PUBLISHED = "It waits in the outbox for the relay, which publishes what writers could not."
#: Of native collections, whose outbox is the log.
PASSED_BY_FEED = (
    "The feed has passed it in the storage node's log. The write stream retains entries for "
    "seconds and no longer has this one."
)
NOT_FED = (
    "It is in the storage node's log. The feed, which publishes the log in order, has not reached "
    "it yet."
)
FEED_BEGINS = (
    "The feed of the storage node's log begins with new write streams, so it is not known whether "
    "it has passed this version."
)
LOGGED_LONG_AGO = (
    "The write stream no longer has it, and the storage node has no record of its place in the log."
)

WATCHED = "The filter node of the partition matches the query."
NOT_WATCHED = "The filter node of the partition does not match the query at the moment."

WOULD_BE_WATCHED = "No subscription is needed: the query is evaluated as if there were one."
WOULD_HOLD = "The document is in the query's result."

GROUPED = "The query returns groups, and this document is part of one."

HOLDS = {"filter": "It matches.", "rule": "The rule allows the user to read it."}
HOLDS_NO_MORE = {
    "filter": "It no longer matches, so it leaves the result.",
    "rule": "The rule no longer allows the user to read it, so it leaves the result.",
}
HOLDS_NOT = {
    "filter": "It does not match.",
    "rule": "The rule does not allow this user to read it.",
}
NOR_BEFORE = "The previous version was not in the result either, so nothing changed for the client."
DENIED = (
    "Users like this may read nothing: there is no rule, or it requires a claim that they lack."
)
NOTHING_LEFT = (
    "A deletion has no content to match: it concerns every subscriber that had the document."
)
MATCHED_SURELY = (
    "It matched the query, because the grid reported it; its content is no longer available."
)
CONTENT_GONE = (
    "Later versions have replaced its content, so the result can no longer be determined."
)
RULES_CHANGED = "The write was made under newer access rules than those of the subscription."

IN_WINDOW = "It changed the window."
AT_PLACE = "It is at position {place} of the sort order, inside the window."
RENEWING = "The window lost its last document, and the sort node is reading the query again."
OUTSIDE = {
    "before": "It sorts before the window, which contains positions {first} to {last}: `offset` "
    "skips it.",
    "behind": "It sorts after the window, which contains positions {first} to {last}: `limit` "
    "excludes it.",
}
NEVER_IN_WINDOW = "The document was not in the window when it was deleted."
WINDOW_UNKNOWN = "Its position outside the window at that time is not known."

SHOWN = {
    "add": "The document entered the result.",
    "change": "The document changed within the result.",
    "changeIndex": "The document moved within the result.",
    "remove": "The document left the result.",
}
WAITS_FOR_BATCH = "It has arrived and is held until all parts of its atomic batch have arrived."
IN_ROWS = "The initial result of the subscription already contained this version."
OUTRUN = "Version {version} arrived first; older versions are ignored."
STARTING = "Not all nodes have registered the query yet."
FORGOTTEN = "The server no longer has records of that time."
NOTHING_SHOWN = (
    "The server sent nothing for this version. Its content is gone, so the reason is not known; "
    "most likely it did not match."
)
NEVER_HELD = "The document was not in the result when it was deleted."
NOT_HEARD = "The server has not received the change, or its records start later."

TOLD = {
    "events": "The client received {events}.",
    "together": "The client received {events}, which combines this change with others.",
    "resumed": "The client was disconnected and received {events} when it resumed.",
    "result": "The client received the complete result.",
    "muted": "The client's `options.events` exclude this kind of change.",
    "anew": "The changes that waited for the client were dropped, and it starts with a new result "
    "({reason}).",
}
UNDONE = "It was combined with later changes that reverted it, so there was nothing to send."
DELIVERY = {
    "taken": "The connection has sent it.",
    "handed": "The connection has not sent it yet; {count} frames are ahead of it.",
    "waiting": "It waits for {count} earlier frames that the client has not read.",
    "dropped": "It was dropped before the client received it, in favour of a new result.",
    "none": "",
}
UNTOLD = {
    "held": "It is combined with later changes until the throttle or the client allows the next "
    "event.",
    "waiting": "The client is waiting for its result, which will contain it.",
    "cut_off": "The client does not read and memory is short, so it receives nothing until it "
    "reads again.",
    "forgotten": "The server no longer knows what it sent to the client then.",
    "before": "The subscription did not exist yet.",
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
    "everything": "The query matches every document.",
    "never": "No document can match the query.",
    "residual": "No part of the query can be indexed, so its filter is evaluated for every write.",
    "equality": "The query is indexed by values of {paths}",
    "range": "The query is indexed by ranges of {paths}",
    "literal": "The query is indexed by fragments of text in {paths}",
    "text": "The query is indexed by the terms of its text search",
    "geo": "The query is indexed by areas in {paths}",
    "existence": "The query is indexed by the existence or type of {paths}",
    "mixed": "The query is indexed by several kinds of values of {paths}",
}
_WHOLE = ("everything", "never", "residual")


def reach(kind: str, paths: Sequence[str], *, reached: bool) -> str:
    """Describe whether the index leads the document to the query."""
    text = _FOUND_BY[kind].format(paths=", ".join(f"`{path}`" for path in paths))
    if kind in _WHOLE:
        return text
    return text + (
        ", and the document matches an entry, so the filter is evaluated."
        if reached
        else ", and the document matches no entry, so the filter is not evaluated."
    )


def sentences(explanation: JsonObject) -> str:
    """Return the sentences of the tests that decided."""
    texts = list(_deciding(explanation["reason"]))
    if len(texts) <= MOST_SENTENCES:
        return " ".join(texts)
    return " ".join(texts[:MOST_SENTENCES]) + f" And {len(texts) - MOST_SENTENCES} more."


MOST_SENTENCES = 5


def _deciding(reason: JsonValue) -> list[str]:
    if not isinstance(reason, dict) or reason["decides"] is not True:
        return []
    parts = reason["parts"]
    if isinstance(parts, list) and parts:
        return [sentence for part in parts for sentence in _deciding(part)]
    return [str(reason["sentence"])]
