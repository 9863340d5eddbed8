"""The data plane's HTTP layer, which runs on the event loop and calls handlers directly from ASGI.

Control-plane calls go through Django's views and its ORM, on threads; that suits calls made by
people. Documents are read and written by programs, thousands of times a second, so their calls take
a shorter path: `CallHead` is the request without its body, `HttpOperation` declares one call with
its OpenAPI object, `Router` finds it, `CallResponse` is its response. The conventions are the same:
the errors, ETags, limits, idempotency and headers of `foundation.api`.
"""

from data_plane.http.body import RequestBody
from data_plane.http.head import CallHead
from data_plane.http.operation import HttpOperation
from data_plane.http.response import CallResponse, json_answer, problem_answer
from data_plane.http.router import Router

__all__ = [
    "CallHead",
    "CallResponse",
    "HttpOperation",
    "RequestBody",
    "Router",
    "json_answer",
    "problem_answer",
]
