"""Why a client got a change of a document, or did not.

A member asks of a subscription and a version of a document. What filter, rules and document say is
worked out then: nothing of it is noted while events flow. What cannot be worked out any more, who
was told what, the hub remembers within a bound (`native/live/src/hub/trace`).

question   what is asked and of whom, as it travels between processes
exchange   to the process that has the subscription, and back
answering  that process's side
subjects   whom a question can be about
evidence   what database, streams, filters and hub know
story      what follows from it, step by step
wording    the steps in words
views      the API
"""
