"""Every URL of the control plane for tenants, below `/api/v1/`."""

from __future__ import annotations

from django.urls import URLPattern

from tenants.api import (
    api_keys,
    audit_log,
    consumption,
    error_log,
    invitations,
    issuers,
    me,
    members,
    request_log,
    saved_queries,
    sessions,
    sign_up,
    tenants,
    tokens,
    webhooks,
    whoami,
)

# Patterns are tried in order: frequent calls of programs come before calls of the console.
control_plane: list[URLPattern] = [
    *api_keys.urlpatterns,
    *tenants.urlpatterns,
    *members.urlpatterns,
    *webhooks.urlpatterns,
    *issuers.urlpatterns,
    *consumption.urlpatterns,
    *audit_log.urlpatterns,
    *error_log.urlpatterns,
    *request_log.urlpatterns,
    *saved_queries.urlpatterns,
    *tokens.urlpatterns,
    *invitations.urlpatterns,
    *sessions.urlpatterns,
    *sign_up.urlpatterns,
    *me.urlpatterns,
]

data_plane: list[URLPattern] = [*whoami.urlpatterns]
