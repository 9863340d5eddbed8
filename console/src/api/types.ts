/** What the control plane answers. */

export type Role = "viewer" | "developer" | "admin" | "owner";

export interface Tenant {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly plan: string;
  readonly state: "active" | "suspended" | "deleting";
  readonly cors_origins: readonly string[];
  readonly created_at: string;
  readonly purge_at: string | null;
}

export type Rule = boolean | Record<string, unknown>;

export interface Rules {
  readonly read?: Rule;
  readonly create?: Rule;
  readonly update?: Rule;
  readonly delete?: Rule;
}

export interface DeclaredIndex {
  readonly name: string;
  readonly fields: readonly (readonly [string, 1 | -1])[];
  readonly unique: boolean;
}

export interface Index extends DeclaredIndex {
  readonly state: "building" | "ready" | "failed";
  readonly progress: { readonly done: number; readonly total: number };
  readonly error: string | null;
}

export interface Collection {
  readonly id: string;
  readonly name: string;
  readonly schema: Record<string, unknown> | null;
  readonly access_rules: Rules;
  readonly indexes: readonly Index[];
  readonly ttl: { readonly field: string; readonly after_s: number } | null;
  /** Whether its documents come from a source, and from nowhere else. */
  readonly read_only: boolean;
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface Topic {
  readonly id: string;
  readonly name: string;
  readonly kind: "flat" | "hierarchy" | "geo" | "plane";
  readonly grid: { readonly bounds: readonly [number, number, number, number] } | null;
  readonly retention_s: number;
  readonly max_data_bytes: number;
  readonly created_at: string;
}

export interface Member {
  readonly user_id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly created_at: string;
}

export interface Invitation {
  readonly id: string;
  readonly email: string;
  readonly role: Role;
  readonly state: "open" | "expired";
  readonly invited_by: string | null;
  readonly expires_at: string;
}

export interface ApiKey {
  readonly id: string;
  readonly kind: "secret" | "publishable";
  readonly name: string;
  readonly key_id: string;
  readonly key: string | null;
  readonly scopes: readonly string[];
  readonly collections: readonly string[];
  readonly state: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly created_at: string;
}

export interface NewApiKey extends ApiKey {
  readonly secret: string | null;
}

export interface Webhook {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly state: "pending" | "active" | "disabled";
  readonly state_reason: string | null;
  readonly failing_since: string | null;
  readonly created_at: string;
}

export interface Delivery {
  readonly id: string;
  readonly event_type: string;
  readonly payload: unknown;
  readonly state: string;
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly last_answer: string | null;
  readonly last_duration_ms: number | null;
  readonly created_at: string;
}

export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly action: string;
  readonly actor: string;
  readonly actor_label: string;
  readonly address: string | null;
  readonly request_id: string;
  readonly target_type: string;
  readonly target_id: string;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
}

export type ErrorArea = "request" | "webhook" | "task" | "live" | "aggregate";

export interface ErrorEntry {
  readonly id: string;
  readonly area: ErrorArea;
  readonly code: string;
  readonly status: number | null;
  readonly place: string;
  readonly detail: string;
  readonly actor: string;
  readonly request_id: string;
  readonly count: number;
  readonly at: string;
  readonly last_at: string;
}

export interface Quota {
  readonly plan: string;
  readonly limits: Readonly<Record<string, number>>;
  readonly used: Readonly<Record<string, number>>;
}

export interface UsagePoint {
  readonly at: string;
  readonly metric: string;
  readonly amount: number;
}

export interface Subscription {
  readonly id: string;
  readonly connection: string;
  readonly name: string;
  readonly user: string;
  readonly principal: string;
  readonly collection?: string;
  readonly topic?: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly query_hash: string;
  readonly state: "starting" | "live" | "stale";
  readonly age_s: number;
  readonly events: number;
  readonly events_per_s: number;
  readonly lag_ms: number | null;
  readonly waiting: number;
  readonly waiting_bytes: number;
  readonly result_bytes: number;
}
