/** Writes as API calls. */

import { encode, stringify } from "../ejson/encode.js";
import { idSegment } from "../ejson/path.js";
import type { Plain } from "../local/paths.js";
import type { Operation } from "../local/writes.js";
import type { Job } from "./job.js";

/** The preconditions of a write. */
export interface Conditions {
  /** Changes the document only at this version; otherwise the write is rejected (412). */
  readonly ifVersion?: number;
}

/** The options of `update` and `merge`. */
export interface UpdateOptions extends Conditions {
  /** Creates the document if it is absent. */
  readonly upsert?: boolean;
  /** Selects the elements that `$[name]` in the update refers to. */
  readonly arrayFilters?: readonly Plain[];
}

/** One operation with its options, as bulk calls and transactions send it. */
export interface Step {
  readonly operation: Operation;
  readonly options: UpdateOptions;
}

/** Returns a write of one document. */
export function single({ operation, options }: Step): Job {
  const { collection, id } = operation;
  const documents = `/v1/collections/${encodeURIComponent(collection)}/documents`;
  const path = `${documents}/${idSegment(id)}`;
  const common = {
    idempotencyKey: newKey(),
    ...(options.ifVersion === undefined ? {} : { ifMatch: `"v${options.ifVersion}"` }),
  };
  const operations = [operation];
  switch (operation.kind) {
    case "insert": {
      const body = stringify({ _id: id, ...operation.document });
      return { request: { method: "POST", path: documents, body, ...common }, operations };
    }
    case "replace": {
      const body = stringify(operation.document);
      return { request: { method: "PUT", path, body, ...common }, operations };
    }
    case "delete":
      return { request: { method: "DELETE", path, ...common }, operations };
    default: {
      const body = stringify(operation.change);
      const contentType =
        operation.kind === "merge" ? "application/merge-patch+json" : "application/json";
      const address = path + searchOf(options);
      const request = { method: "PATCH", path: address, body, contentType, ...common };
      return { request, operations };
    }
  }
}

function searchOf({ upsert, arrayFilters }: UpdateOptions): string {
  const search = new URLSearchParams();
  if (upsert === true) search.set("upsert", "true");
  if (arrayFilters !== undefined) search.set("array_filters", stringify(arrayFilters));
  return search.size === 0 ? "" : `?${search}`;
}

/** Returns several writes of one collection as one call. */
export function bulk(collection: string, steps: readonly Step[], ordered: boolean): Job {
  const path = `/v1/collections/${encodeURIComponent(collection)}/documents:bulk`;
  const body = stringify({ operations: steps.map(stepBody), ordered });
  return job(path, body, steps);
}

/** Returns writes to several collections as one call, all or none. */
export function transaction(steps: readonly Step[]): Job {
  const operations = steps.map((step) => ({
    collection: step.operation.collection,
    ...stepBody(step),
  }));
  return job("/v1/transactions", stringify({ operations }), steps);
}

function job(path: string, body: string, steps: readonly Step[]): Job {
  return {
    request: { method: "POST", path, body, idempotencyKey: newKey() },
    operations: steps.map(({ operation }) => operation),
  };
}

function stepBody({ operation, options }: Step): Plain {
  const condition = options.ifVersion === undefined ? {} : { if_version: options.ifVersion };
  return { ...kindBody(operation, options), ...condition };
}

function kindBody(operation: Operation, options: UpdateOptions): Plain {
  const { id } = operation;
  switch (operation.kind) {
    case "insert":
      return { insert: encode({ _id: id, ...operation.document }) };
    case "replace":
      return { replace: { id, document: operation.document } };
    case "delete":
      return { delete: { id } };
    default: {
      const { upsert, arrayFilters } = options;
      return { update: { id, update: operation.change, upsert, array_filters: arrayFilters } };
    }
  }
}

/** Returns a new idempotency key. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
