"""The resources of a tenant in the control plane, from which the fields are generated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestResource:
    """A resource that is read and changed by REST calls."""

    #: The names of fields and types, singular and plural.
    one: str
    many: str
    segment: str
    #: Names of components.
    answer: str
    #: The member that identifies it in a URL. None: it cannot be read individually.
    key: str | None = "id"
    creation: str | None = None
    created: str | None = None
    change: str | None = None
    deletable: bool = False
    #: Whether the list is paginated.
    paged: bool = True
    #: Further calls: a word for the field, the call's suffix, the components.
    calls: tuple[tuple[str, str, str | None, str], ...] = ()
    #: The parent resource, if it is not the tenant: a path segment, and its singular name.
    of: tuple[str, str] | None = None


TENANT = RestResource(
    "tenant",
    "tenants",
    "tenants",
    "TenantAnswer",
    key="slug",
    creation="TenantCreationRequest",
    change="PatchedTenantChangeRequest",
    deletable=True,
    calls=(("restore", ":restore", None, "TenantAnswer"),),
)
#: The resource of which each tenant has only one.
CLUSTER = RestResource(
    "cluster",
    "cluster",
    "cluster",
    "ClusterAnswer",
    creation="ClusterCreationRequest",
    change="PatchedClusterChangeRequest",
    deletable=True,
)
#: Resources of which tenants have several.
RESOURCES = (
    RestResource(
        "member",
        "members",
        "members",
        "MemberAnswer",
        key="user_id",
        change="PatchedMemberChangeRequest",
        deletable=True,
    ),
    RestResource(
        "invitation",
        "invitations",
        "invitations",
        "InvitationAnswer",
        creation="InvitationCreationRequest",
        deletable=True,
        calls=(("resend", ":resend", None, "InvitationAnswer"),),
    ),
    RestResource(
        "apiKey",
        "apiKeys",
        "api-keys",
        "ApiKeyAnswer",
        creation="ApiKeyCreationRequest",
        created="NewApiKeyAnswer",
        change="PatchedApiKeyChangeRequest",
        deletable=True,
        calls=(("rotate", "/rotate", "ApiKeyRotationRequest", "NewApiKeyAnswer"),),
    ),
    RestResource(
        "collection",
        "collections",
        "collections",
        "CollectionAnswer",
        key="name",
        creation="CollectionCreationRequest",
        change="PatchedCollectionChangeRequest",
        deletable=True,
    ),
    RestResource(
        "topic",
        "topics",
        "topics",
        "TopicAnswer",
        key="name",
        creation="TopicCreationRequest",
        change="PatchedTopicChangeRequest",
        deletable=True,
    ),
    RestResource(
        "aggregate",
        "aggregates",
        "aggregates",
        "AggregateAnswer",
        key="name",
        creation="AggregateCreationRequest",
        change="PatchedAggregateChangeRequest",
        deletable=True,
        calls=(("rebuild", ":rebuild", None, "AggregateAnswer"),),
    ),
    RestResource(
        "dataset",
        "datasets",
        "datasets",
        "DatasetAnswer",
        key="name",
        creation="DatasetCreationRequest",
        change="PatchedDatasetChangeRequest",
        deletable=True,
    ),
    RestResource(
        "issuer",
        "issuers",
        "issuers",
        "IssuerAnswer",
        creation="IssuerCreationRequest",
        deletable=True,
    ),
    RestResource(
        "webhook",
        "webhooks",
        "webhooks",
        "WebhookAnswer",
        creation="WebhookCreationRequest",
        created="NewWebhookAnswer",
        change="PatchedWebhookChangeRequest",
        deletable=True,
        calls=(
            ("verify", ":verify", None, "WebhookAnswer"),
            ("test", ":test", None, "DeliveryAnswer"),
            ("rotateSecretOf", ":rotate-secret", None, "NewWebhookAnswer"),
        ),
    ),
    RestResource(
        "delivery",
        "deliveries",
        "deliveries",
        "DeliveryAnswer",
        of=("webhooks", "webhook"),
        calls=(("resend", ":redeliver", None, "DeliveryAnswer"),),
    ),
    RestResource(
        "personalToken",
        "personalTokens",
        "tokens",
        "TenantTokenAnswer",
        creation="TokenCreationRequest",
        created="NewTokenAnswer",
        deletable=True,
    ),
    RestResource(
        "savedQuery",
        "savedQueries",
        "saved-queries",
        "SavedQueryAnswer",
        creation="SavedQueryCreationRequest",
        change="PatchedSavedQueryChangeRequest",
        deletable=True,
    ),
    RestResource("auditEntry", "auditLog", "audit-log", "AuditEntryAnswer", key=None),
    RestResource("error", "errors", "errors", "ErrorEntryAnswer", key=None),
    RestResource(
        "subscription",
        "subscriptions",
        "subscriptions",
        "SubscriptionAnswer",
        key=None,
        deletable=True,
        paged=False,
    ),
)
