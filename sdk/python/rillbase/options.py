"""The options of a client."""

from __future__ import annotations

from os import PathLike
from typing import TypedDict

from rillbase.credentials import GetToken
from rillbase.writes.queue import OnQueueError

TIMEOUT_S = 30.0


class Options(TypedDict, total=False):
    """The options of `Client` and `AsyncClient`."""

    #: A secret key (`rbk_…`) or a publishable key (`rbp_…`).
    key: str | None
    #: A JWT of an end user, with a publishable key, or a personal token, with `tenant`.
    token: str | None
    #: Returns a token; called when one is needed, and again when it was rejected.
    get_token: GetToken | None
    tenant: str | None
    #: Timeout of a call over HTTP, including retries. Queued writes have no limit.
    timeout_s: float
    #: A connection that is silent for so long is closed; by default twice the heartbeat.
    silence_s: float | None
    #: Whether live queries show writes before the server has confirmed them (the default).
    optimistic: bool
    #: Stores writes while there is no connection: True for as long as the program runs, or a file,
    #: which only one program may use at a time.
    queue: bool | str | PathLike[str]
    #: Called with queued writes that were rejected after their caller had ended. By default they
    #: are logged.
    on_queue_error: OnQueueError | None
