"""*Why?*: explains why a client did, or did not, receive a change of a document.

A request names a subscription and a version of a document. The filter, the access rule and the
document are evaluated when the request arrives; nothing is recorded for it while events flow. Only
what the hub sent to whom cannot be recomputed: it keeps that in bounded rings
(`native/live/src/hub/trace.rs`).

question   the request, as it travels between processes
exchange   to the process that holds the subscription, and back
question_listener  that process's side
subjects   the subscription or query that a request is about
evidence   what the database or the storage node, streams, filters and the hub know
stored_versions  the part of it that is where the documents are stored
clocks     the difference between the clocks of that evidence
story      the steps that follow from the evidence
chronology  times of steps that contradict no cause
wording    the steps in words
views      the API
"""
