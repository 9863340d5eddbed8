"""Errors of credentials, permissions and tenants."""

from __future__ import annotations

from foundation.errors.api_error import ApiError


class Unauthenticated(ApiError):
    status = 401
    code = "unauthenticated"
    title = "Credentials are required"


class InvalidCredentials(ApiError):
    status = 401
    code = "invalid_credentials"
    title = "The credentials are not valid"


class MalformedKey(ApiError):
    status = 401
    code = "malformed_key"
    title = "The key is mistyped or cut off"


class CredentialsExpired(ApiError):
    status = 401
    code = "credentials_expired"
    title = "The credentials have expired"


class TokenExpired(ApiError):
    status = 401
    code = "token_expired"
    title = "The token that opened the connection has expired"


class EmailNotVerified(ApiError):
    status = 403
    code = "email_not_verified"
    title = "The account's email address has not been verified"


class Forbidden(ApiError):
    status = 403
    code = "forbidden"
    title = "The caller is not allowed to do this"


class MissingScope(ApiError):
    status = 403
    code = "missing_scope"
    title = "The credentials lack the required scope"


class CsrfFailed(ApiError):
    status = 403
    code = "csrf_failed"
    title = "The CSRF token is missing or wrong"


class AddressNotAllowed(ApiError):
    status = 403
    code = "address_not_allowed"
    title = "The key may not be used from this address"


class SignUpClosed(ApiError):
    status = 403
    code = "sign_up_closed"
    title = "Sign-up is not open on this installation"


class TenantSuspended(ApiError):
    status = 403
    code = "tenant_suspended"
    title = "The tenant is suspended"


class TenantDeleted(ApiError):
    status = 410
    code = "tenant_deleted"
    title = "The tenant is being deleted"


class TargetNotAllowed(ApiError):
    status = 400
    code = "target_not_allowed"
    title = "The server may not call this URL"
