"""How the calls of the Iceberg catalogue are authenticated, and how their errors look.

The catalogue's calls are those of the data plane, and their problem documents also have the member
`error` that clients of Iceberg read. Calls for files are those of S3: they are signed, and their
errors are XML.
"""

from __future__ import annotations

from http import HTTPStatus
from xml.sax.saxutils import escape

from analytics.api.iceberg_operations import FILES
from analytics.iceberg.file_credentials import signed_by
from data_plane.calls import Call, DataPlane, note_caller
from data_plane.http import CallHead, CallResponse
from data_plane.http.response import PROBLEM_TYPE
from data_plane.http.router import RouteMatch
from foundation.api.rendering import to_json
from foundation.asgi import Scope
from foundation.errors import ApiError, MethodNotAllowed, NotFound
from foundation.request_context import request_id
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal

_TYPES = {
    HTTPStatus.BAD_REQUEST: "BadRequestException",
    HTTPStatus.UNAUTHORIZED: "NotAuthorizedException",
    HTTPStatus.FORBIDDEN: "ForbiddenException",
    HTTPStatus.METHOD_NOT_ALLOWED: "UnsupportedOperationException",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailableException",
}
#: Statuses and codes of S3. Its clients repeat a request after 503.
_S3 = {
    HTTPStatus.UNAUTHORIZED: (403, "AccessDenied"),
    HTTPStatus.FORBIDDEN: (403, "AccessDenied"),
    HTTPStatus.NOT_FOUND: (404, "NoSuchKey"),
    HTTPStatus.METHOD_NOT_ALLOWED: (405, "MethodNotAllowed"),
    HTTPStatus.TOO_MANY_REQUESTS: (503, "SlowDown"),
    HTTPStatus.SERVICE_UNAVAILABLE: (503, "SlowDown"),
}
_DATASET = 3


class IcebergPlane(DataPlane):
    """Handles the catalogue's paths and passes everything else on."""

    def find(self, scope: Scope, head: CallHead) -> RouteMatch[Call]:
        """Return the operation. The catalogue cannot be changed, by whatever path."""
        try:
            return super().find(scope, head)
        except NotFound:
            if head.method in ("GET", "HEAD"):
                raise
            raise MethodNotAllowed("Tables can only be read.", headers={"Allow": "GET"}) from None

    async def authenticated(self, head: CallHead) -> tuple[Principal, TenantFacts]:
        """Return the caller, who signs requests for files, and its tenant."""
        if _is_file(head):
            principal, tenant = await signed_by(head, head.segments[_DATASET])
            note_caller(principal, tenant)
            return principal, tenant
        return await super().authenticated(head)

    def problem(self, error: ApiError, head: CallHead) -> CallResponse:
        """Respond with an error in the form that the client expects."""
        if _is_file(head):
            return _s3_error(error)
        member = {
            "message": error.detail or error.title,
            "type": _type_of(error, head),
            "code": error.status,
        }
        body = to_json({**error.problem(request_id.get()), "error": member})
        return CallResponse(error.status, body, dict(error.headers), PROBLEM_TYPE)


def _is_file(head: CallHead) -> bool:
    return head.path.startswith(f"{FILES}/")


def _type_of(error: ApiError, head: CallHead) -> str:
    if error.status == HTTPStatus.NOT_FOUND:
        return "NoSuchTableException" if "/tables/" in head.path else "NoSuchNamespaceException"
    return _TYPES.get(HTTPStatus(error.status), "RESTException")


def _s3_error(error: ApiError) -> CallResponse:
    status, code = _S3.get(HTTPStatus(error.status), (error.status, "InvalidRequest"))
    detail = escape(error.detail or error.title)
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{code}</Code><Message>{detail}</Message></Error>"
    )
    return CallResponse(status, body.encode(), dict(error.headers), "application/xml")
