"""Every address of the control plane over tenants, below `/api/v1/`."""

from __future__ import annotations

from django.urls import URLPattern

from tenants.api import (
    api_keys,
    audit_log,
    consumption,
    invitations,
    issuers,
    me,
    members,
    sessions,
    sign_up,
    tenants,
    tokens,
    webhooks,
    whoami,
)

control_plane: list[URLPattern] = [
    *sessions.urlpatterns,
    *sign_up.urlpatterns,
    *me.urlpatterns,
    *tenants.urlpatterns,
    *members.urlpatterns,
    *invitations.urlpatterns,
    *tokens.urlpatterns,
    *api_keys.urlpatterns,
    *issuers.urlpatterns,
    *consumption.urlpatterns,
    *webhooks.urlpatterns,
    *audit_log.urlpatterns,
]

data_plane: list[URLPattern] = [*whoami.urlpatterns]
