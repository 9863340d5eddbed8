"""The data plane's way of answering HTTP: on the event loop, from ASGI to the handler directly.

Control-plane calls go through Django's views and its ORM, on threads; that suits calls that
people make. Documents are read and written by programs, thousands of times a second, so their
calls take a shorter path: `Head` is the request without its body, `Operation` declares one call
with its OpenAPI object, `Router` finds it, `Answer` is its answer. The conventions are the same:
the errors, ETags, limits, idempotency and headers of `foundation.api`.
"""

from data_plane.http.answer import Answer, json_answer, problem_answer
from data_plane.http.body import Body
from data_plane.http.head import Head
from data_plane.http.operation import Operation
from data_plane.http.router import Router

__all__ = ["Answer", "Body", "Head", "Operation", "Router", "json_answer", "problem_answer"]
