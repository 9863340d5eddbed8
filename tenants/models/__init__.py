"""The tables of tenants, one noun per file."""

from tenants.models.api_key import ApiKey, PersonalToken
from tenants.models.audit import AuditEntry
from tenants.models.error_log import ErrorEntry
from tenants.models.issuer import Issuer
from tenants.models.membership import Invitation, Membership
from tenants.models.plan import Plan, Quota
from tenants.models.request_log import RequestBatch, RequestGap
from tenants.models.saved_query import SavedQuery
from tenants.models.tenant import Tenant
from tenants.models.usage import UsageHour, UsageMinute, UsageSample
from tenants.models.user import EmailProof, Purpose, User, UserSession
from tenants.models.webhook import Webhook, WebhookDelivery

__all__ = [
    "ApiKey",
    "AuditEntry",
    "EmailProof",
    "ErrorEntry",
    "Invitation",
    "Issuer",
    "Membership",
    "PersonalToken",
    "Plan",
    "Purpose",
    "Quota",
    "RequestBatch",
    "RequestGap",
    "SavedQuery",
    "Tenant",
    "UsageHour",
    "UsageMinute",
    "UsageSample",
    "User",
    "UserSession",
    "Webhook",
    "WebhookDelivery",
]
