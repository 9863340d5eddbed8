"""Settings: read from the environment once, typed, and validated at startup.

Each field is one environment variable, or a file of that name in the directory that
RILLBASE_SETTINGS_DIR names; docs/operations/settings.md is generated from these descriptions. A
production installation rejects development conveniences here, before anything else starts.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from foundation.database_roles import DatabaseRole, role_url

MIN_SECRET_CHARS = 32
DEVELOPMENT_SECRET = "development-only-secret-" + "0" * 32

#: URL prefix of an object store, as opposed to a folder.
OBJECT_STORE_SCHEME = "s3://"
#: A bucket, and the prefix of all keys in it.
_BUCKET = re.compile(OBJECT_STORE_SCHEME + r"[^/?#]+(/[^?#]*)?")

Network = IPv4Network | IPv6Network


class Environment(BaseSettings):
    """All settings of a process. Names are those of the environment variables, in lower case."""

    model_config = SettingsConfigDict(
        env_file=None, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    rillbase_env: Literal["development", "test", "production"] = Field(
        "development", description="Kind of installation. `production` enforces safe settings."
    )
    rillbase_debug: bool = Field(
        False, description="Show tracebacks in responses. Not allowed in production."
    )
    rillbase_data_dir: Path = Field(
        Path(".rillbase"), description="Where embedded servers, secrets and logs live."
    )
    rillbase_disk_reserve_mib: int = Field(
        64,
        ge=0,
        description="Disk space that the launcher reserves in the data directory. When less than "
        "32 MiB are free, the launcher frees the reserve and the servers reject "
        "writes.",
    )
    rillbase_secret_key: SecretStr = Field(
        SecretStr(DEVELOPMENT_SECRET),
        description="Key that signs cursors and CSRF tokens, and from which the passwords of the "
        "database roles are derived.",
    )
    rillbase_key_pepper: SecretStr = Field(
        SecretStr(DEVELOPMENT_SECRET),
        description="Pepper for the HMAC with which API keys and tokens are stored.",
    )
    rillbase_hosts: Annotated[list[str], NoDecode] = Field(
        default=["localhost", "127.0.0.1", "[::1]"],
        description="Host names that the server accepts, separated by commas.",
    )
    rillbase_public_url: str = Field(
        "http://127.0.0.1:8080", description="The URL at which users reach this installation."
    )
    rillbase_trusted_proxies: Annotated[list[Network], NoDecode] = Field(
        default=[],
        description="Networks whose X-Forwarded-For and X-Forwarded-Proto headers are trusted. "
        "Not allowed to contain the whole internet in production.",
    )
    rillbase_sign_up: Literal["open", "invited", "closed"] = Field(
        "invited", description="Who may create an account."
    )
    rillbase_email_url: str = Field(
        "log://",
        pattern=r"^(log://$|dir:///|smtps?://[^/?#])",
        description="Mail transport: `log://` writes the links of mails to the log (not in "
        "production), `dir:///path` writes mails to files, "
        "`smtp://user:password@host:587?tls=1` sends them by STARTTLS, `smtps://…` "
        "by TLS.",
    )
    rillbase_email_from: str = Field(
        "Rillbase <rillbase@localhost>", description="Sender address of mails."
    )
    rillbase_allow_loopback_targets: bool = Field(
        False,
        description="Allow webhooks, key sets and sources at http://127.0.0.1. Not allowed in "
        "production. In development, the launcher enables it while it listens on "
        "loopback only.",
    )
    rillbase_log_format: Literal["json", "console"] = Field(
        "json", description="Format of log lines."
    )
    rillbase_log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Minimum severity of log lines."
    )
    rillbase_body_max_bytes: int = Field(
        32 * 1024 * 1024, ge=1024, description="Maximum size of a request body."
    )
    rillbase_control_body_max_bytes: int = Field(
        256 * 1024, ge=1024, description="Maximum size of a request body in the control plane."
    )
    rillbase_import_max_bytes: int = Field(
        16 * 1024 * 1024 * 1024,
        ge=1024,
        description="Maximum size of an import, both compressed and decompressed.",
    )
    rillbase_header_max_bytes: int = Field(
        64 * 1024,
        ge=4096,
        description="Maximum size of a request line and its headers together, and of chunk "
        "extensions and trailers.",
    )
    rillbase_header_timeout_s: float = Field(
        10.0, gt=0, description="Seconds within which the headers of a request must arrive."
    )
    rillbase_transfer_min_bytes_per_s: int = Field(
        1024,
        ge=0,
        description="Minimum rate at which a client must send a body or read a response. Slower "
        "clients are disconnected. There is no overall deadline.",
    )
    rillbase_transfer_window_s: float = Field(
        10.0, gt=0, description="Seconds over which that rate is measured."
    )
    rillbase_connections_max: int = Field(
        10_000,
        ge=1,
        description="Maximum number of connections to one server process; lower if the limit on "
        "open files requires it. At the limit, the oldest unauthenticated connection "
        "is closed.",
    )
    rillbase_connections_per_address: int = Field(
        2_048,
        ge=1,
        description="Maximum number of connections per client address. An IPv6 address counts "
        "with its whole /64 network. RILLBASE_TRUSTED_PROXIES are exempt.",
    )
    rillbase_message_memory_mib: int = Field(
        128,
        ge=32,
        description="Memory of one server process for WebSocket messages that are being "
        "received or processed. At the limit, connections are not read until "
        "there is room.",
    )
    rillbase_body_memory_mib: int = Field(
        128,
        ge=32,
        description="Memory of one server process for request bodies that are being received "
        "or processed. At the limit, connections are not read until there is "
        "room.",
    )
    rillbase_response_memory_mib: int = Field(
        128,
        ge=64,
        description="Memory of one server process for responses that clients have not read. "
        "At the limit, the clients that have been slow for longest are "
        "disconnected.",
    )
    rillbase_metrics_token: SecretStr = Field(
        SecretStr(""),
        description="If set, `/metrics` requires it as a bearer token. If not, `/metrics` is "
        "public in development and absent in production.",
    )
    rillbase_max_array_elements: int = Field(
        100_000,
        ge=1,
        description="Maximum number of elements in an array of a written document. Existing "
        "documents stay readable.",
    )
    rillbase_max_document_values: int = Field(
        500_000,
        ge=1,
        description="Maximum number of values in a written document at all levels, including "
        "embedded documents and arrays. Evaluating a filter takes at most a million "
        "steps, about one for each value that it examines.",
    )
    rillbase_refusals_per_minute: int = Field(
        600,
        ge=1,
        description="Requests with missing or invalid credentials (401) that a client address "
        "may make per minute, possibly all at once. Further ones get 429. "
        "Requests with valid credentials are not affected.",
    )
    rillbase_drain_s: float = Field(
        0.0,
        ge=0.0,
        le=600.0,
        description="Seconds that a server keeps running after SIGTERM. Meanwhile it reports "
        "that it is not ready and asks the clients of live queries to reconnect, one "
        "after the other.",
    )
    rillbase_database_pool_size: int = Field(
        16,
        ge=1,
        le=500,
        description="Maximum number of PostgreSQL connections per process and role.",
    )
    rillbase_grid: Literal["spark", "processes"] = Field(
        "spark",
        description="Where the nodes of the matching grid run: as jobs of a `spark` application, "
        "which needs Java 17, or as separate `processes` next to the grid's "
        "supervisor.",
    )
    rillbase_grid_master: str = Field(
        "",
        pattern=r"^(local\[\d+\]|spark://.+|k8s://https?://.+)?$",
        description="Spark master of the grid, for example `spark://host:7077`, or "
        "`k8s://https://…` with the remaining configuration in "
        "`spark-defaults.conf`. If empty, Spark runs inside the supervisor's own "
        "driver.",
    )
    rillbase_spark_secret: SecretStr = Field(
        SecretStr(""),
        description="Secret with which a standalone Spark cluster (`spark://…`) authenticates "
        "drivers and executors: `spark.authenticate.secret` of its master and "
        "workers.",
    )
    rillbase_upload_workers: int = Field(
        3,
        ge=1,
        le=64,
        description="Number of uploads to datasets and of Parquet files of collections that a web "
        "server decodes concurrently, each in a separate worker process. One tenant never occupies "
        "all workers unless there is only one.",
    )
    rillbase_upload_memory_mib: int = Field(
        768,
        ge=128,
        description="Memory limit for decoding one upload or Parquet file.",
    )
    rillbase_sql_workers: int = Field(
        3,
        ge=1,
        le=64,
        description="Number of SQL statements that a web server executes concurrently, each in a "
        "separate worker process. One tenant never occupies all workers unless there is only one.",
    )
    rillbase_sql_threads: int = Field(
        2, ge=1, le=64, description="Number of threads that execute one SQL statement."
    )
    rillbase_sql_memory_mib: int = Field(
        2048,
        ge=256,
        description="Memory limit of one SQL statement. Half of it is for joins, groups and sorts, "
        "which use temporary files beyond that.",
    )
    rillbase_sql_temporary_mib: int = Field(
        4096,
        ge=16,
        description="Disk space for the temporary files of one SQL statement, in the system's "
        "temporary directory.",
    )
    rillbase_sql_copies_mib: int = Field(
        16384,
        ge=64,
        description="Disk space for local copies of the files that SQL statements read, if "
        "analytics tables are in an object store.",
    )
    rillbase_sql_spark_rows: int = Field(
        200_000_000,
        ge=0,
        description="Number of rows above which a SQL statement runs on Spark, if Spark can "
        "execute it. Callers can choose the engine themselves.",
    )
    rillbase_sql_spark_memory_mib: int = Field(
        2048,
        ge=512,
        description="Memory of the driver that executes SQL statements on Spark. The statements "
        "themselves run in it, unless `RILLBASE_ANALYTICS_MASTER` is a `spark://` master.",
    )
    rillbase_analytics_dir: str = Field(
        "",
        description="Location of the files of analytics tables, shared by web servers and the "
        "pipeline: a folder, or `s3://bucket/prefix` for an S3-compatible store, "
        "whose address, region and credentials come from `AWS_ENDPOINT_URL`, "
        "`AWS_REGION`, `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` or from "
        "the machine. If empty: `analytics` in the data directory; in production, "
        "analytics tables are off.",
    )
    rillbase_analytics_workers: Literal["spark", "threads"] = Field(
        "spark",
        description="Where the stages of the analytics pipeline run: as jobs of a `spark` "
        "application, which needs Java 17, or in `threads` of the pipeline's "
        "process.",
    )
    rillbase_analytics_master: str = Field(
        "",
        pattern=r"^(local\[\d+\]|spark://.+|k8s://https?://.+)?$",
        description="Spark master of the analytics pipeline. If empty, Spark runs inside the "
        "pipeline's own driver. Workers need access to the files of the analytics "
        "tables.",
    )
    rillbase_analytics_batch_bytes: int = Field(
        64 * 1024 * 1024,
        ge=1,
        description="Size at which waiting uploads are sorted together.",
    )
    rillbase_analytics_batch_age_s: float = Field(
        3.0,
        ge=0,
        description="Age in seconds of the oldest waiting upload at which uploads are sorted "
        "together.",
    )
    rillbase_analytics_authority_age_s: float = Field(
        60.0,
        ge=0,
        description="Age in seconds at which rows are merged into the authority. They are merged "
        "earlier if they reach an eighth of its size.",
    )
    rillbase_analytics_scan_rows: int = Field(
        5_000_000,
        ge=0,
        description="Number of rows above which a query of an analytics table runs on the "
        "pipeline's workers.",
    )
    rillbase_live_memory_mib: int = Field(
        512,
        ge=16,
        description="Memory of one server process for live queries: results, and events that "
        "wait for clients. At the limit, results that no client has used recently "
        "are evicted, clients that do not read are disconnected, and further "
        "subscriptions are rejected.",
    )
    rillbase_source_networks: Annotated[list[Network], NoDecode] = Field(
        default=[],
        description="Networks, separated by commas, that may contain databases which sources "
        "follow. Databases on the public internet are always allowed.",
    )
    rillbase_source_slot_bytes: int = Field(
        4 * 1024 * 1024 * 1024,
        ge=1,
        description="Maximum size of the log that a followed table makes its server retain. "
        "Beyond it, the replication slot is dropped and the table is copied "
        "again.",
    )
    rillbase_trace_mib: int = Field(
        16,
        ge=1,
        description="Memory of one server process for recent deliveries, which *Why?* explains. "
        "Each query and each client has an equal share.",
    )
    rillbase_clusters: Literal["off", "kubernetes"] = Field(
        "off",
        description="Where tenants' dedicated grids run. With `off`, tenants cannot have one.",
    )
    rillbase_clusters_name: str = Field(
        "rillbase",
        pattern=r"^[a-z0-9]([a-z0-9-]{0,25}[a-z0-9])?$",
        description="Prefix of the names of tenants' namespaces. Installations that share a "
        "Kubernetes cluster need different prefixes: each one removes namespaces "
        "with its prefix that belong to none of its tenants.",
    )
    rillbase_clusters_namespace: str = Field(
        "rillbase",
        description="Namespace of the installation's own servers, which tenants' grids may call.",
    )
    rillbase_clusters_images: Annotated[dict[str, str], NoDecode] = Field(
        default={"default": "rillbase/spark:latest"},
        description="Images that tenants may choose from, as `name=image`, separated by "
        "commas. The first one is the default.",
    )
    rillbase_clusters_kubeconfig: str = Field(
        "",
        description="Kubeconfig file. If empty, the pod's service account is used.",
    )
    rillbase_clusters_api_networks: Annotated[list[Network], NoDecode] = Field(
        default=[ip_network("0.0.0.0/0")],
        description="Networks of the Kubernetes API server, for the network policies of "
        "tenants' grids.",
    )
    rillbase_default_plan: str = Field(
        "free",
        description="Plan of a new tenant. In development, the launcher sets `unlimited`.",
    )
    rillbase_audit_retention_days: int = Field(
        365, ge=1, description="Days that audit entries are kept."
    )
    rillbase_error_log_retention_days: int = Field(
        7, ge=1, description="How long entries of tenants' error logs are kept."
    )
    rillbase_request_log_mib: int = Field(
        512,
        ge=0,
        description="Disk space for the request logs of all tenants. If it runs out, the tenants "
        "with the largest logs lose their oldest entries. With `0`, requests are not recorded.",
    )
    rillbase_tenant_grace_days: int = Field(
        7, ge=0, description="Days between the deletion of a tenant and the removal of its data."
    )

    database_url: str = Field(
        "",
        description="PostgreSQL server, with a role that may create roles and owns the database. "
        "The roles of the application are derived from it.",
    )
    database_app_url: str = Field("", description="Overrides the derived URL of role `rb_app`.")
    database_auth_url: str = Field("", description="Overrides the derived URL of role `rb_auth`.")
    database_relay_url: str = Field("", description="Overrides the derived URL of role `rb_relay`.")
    database_staff_url: str = Field("", description="Overrides the derived URL of role `rb_staff`.")
    database_owner_url: str = Field("", description="Overrides the derived URL of role `rb_owner`.")

    redis_url: str = Field(
        "redis://127.0.0.1:6379/0",
        description="Valkey or Redis server; default for the next three.",
    )
    broker_url: str = Field("", description="Server of the task queues.")
    limits_url: str = Field("", description="Server of the rate limits.")
    events_url: str = Field("", description="Server of the event layer.")

    storage_url: str = Field(
        "",
        description="URL of the storage node, as its administrator: "
        "`redis://admin:<token>@host:port`. If empty, there are neither topics nor "
        "aggregates.",
    )
    otel_exporter_otlp_endpoint: str = Field(
        "", description="OTLP/HTTP endpoint for traces. If empty, tracing is off."
    )

    @field_validator("rillbase_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        return _split(value)

    @field_validator("rillbase_analytics_dir")
    @classmethod
    def _is_folder_or_bucket(cls, value: str) -> str:
        if value.startswith("s3:") and not _BUCKET.fullmatch(value):
            raise ValueError("a folder, or s3://bucket/prefix")
        return value

    @field_validator("rillbase_clusters_images", mode="before")
    @classmethod
    def _split_images(cls, value: object) -> object:
        parts = _split(value)
        if not isinstance(parts, list):
            return parts
        images = {name: image for name, _, image in (part.partition("=") for part in parts)}
        if not images or not all(images) or not all(images.values()):
            raise ValueError("name=image, separated by commas")
        return images

    @field_validator(
        "rillbase_trusted_proxies",
        "rillbase_clusters_api_networks",
        "rillbase_source_networks",
        mode="before",
    )
    @classmethod
    def _split_networks(cls, value: object) -> object:
        parts = _split(value)
        return [ip_network(p) for p in parts] if isinstance(parts, list) else parts

    @model_validator(mode="after")
    def _production_is_safe(self) -> Self:
        if self.rillbase_env != "production":
            return self
        complaints = [message for holds, message in self._production_rules() if not holds]
        if complaints:
            raise ValueError("not safe for production: " + "; ".join(complaints))
        return self

    def _production_rules(self) -> list[tuple[bool, str]]:
        secrets = {
            "RILLBASE_SECRET_KEY": self.rillbase_secret_key.get_secret_value(),
            "RILLBASE_KEY_PEPPER": self.rillbase_key_pepper.get_secret_value(),
        }
        rules = [
            (
                value != DEVELOPMENT_SECRET and len(value) >= MIN_SECRET_CHARS,
                f"{name} must be set to at least {MIN_SECRET_CHARS} random characters",
            )
            for name, value in secrets.items()
        ]
        return [
            *rules,
            (len(set(secrets.values())) == len(secrets), "secrets must differ from one another"),
            (not self.rillbase_debug, "RILLBASE_DEBUG must be off"),
            (
                bool(self.rillbase_hosts)
                and not any(h.startswith(("*", ".")) for h in self.rillbase_hosts),
                "RILLBASE_HOSTS must list host names without wildcards",
            ),
            (
                self.rillbase_public_url.startswith("https://"),
                "RILLBASE_PUBLIC_URL must begin with https://",
            ),
            (
                self.sends_mail,
                "RILLBASE_EMAIL_URL must not be log://, which writes links with secrets to the log",
            ),
            (
                not _cover_all_addresses(self.rillbase_trusted_proxies),
                (
                    "RILLBASE_TRUSTED_PROXIES must not contain the whole internet: any client "
                    "could forge its address"
                ),
            ),
            (
                not self.rillbase_allow_loopback_targets,
                "RILLBASE_ALLOW_LOOPBACK_TARGETS must be off",
            ),
        ]

    def role_url(self, role: DatabaseRole) -> str:
        """Return the database URL for one role of the application."""
        given = {
            DatabaseRole.APP: self.database_app_url,
            DatabaseRole.AUTH: self.database_auth_url,
            DatabaseRole.RELAY: self.database_relay_url,
            DatabaseRole.STAFF: self.database_staff_url,
            DatabaseRole.OWNER: self.database_owner_url,
        }[role]
        return given or role_url(
            self.database_url, role, self.rillbase_secret_key.get_secret_value()
        )

    @property
    def sends_mail(self) -> bool:
        """Whether mails are sent, rather than written to the log. In production, they are."""
        return self.rillbase_email_url != "log://"

    @property
    def broker(self) -> str:
        return self.broker_url or self.redis_url

    @property
    def limits(self) -> str:
        return self.limits_url or self.redis_url

    @property
    def events(self) -> str:
        return self.events_url or self.redis_url


def _cover_all_addresses(networks: list[Network]) -> bool:
    """Return whether networks cover all addresses of a protocol, in one range or in several."""
    fours = collapse_addresses(n for n in networks if isinstance(n, IPv4Network))
    sixes = collapse_addresses(n for n in networks if isinstance(n, IPv6Network))
    return any(n.prefixlen == 0 for n in fours) or any(n.prefixlen == 0 for n in sixes)


def _split(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


#: Names the directory with files of settings; a variable of the same name takes precedence.
FILES_VARIABLE = "RILLBASE_SETTINGS_DIR"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Read the settings once per process."""
    directory = os.environ.get(FILES_VARIABLE)
    return Environment(_secrets_dir=Path(directory) if directory else None)
