/** The server's messages on a connection (subprotocol `rillbase.v1`). */

import type { Problem } from "../errors.js";

/** A document in an answer. */
export interface EnvelopeFrame {
  readonly id: unknown;
  readonly version: number | null;
  readonly document: unknown;
}

export interface ResultFrame {
  readonly type: "result";
  readonly id: string;
  readonly items: readonly EnvelopeFrame[];
  readonly part: number;
  readonly last: boolean;
  readonly resume?: string;
}

export interface EventFrame {
  readonly type: "event";
  readonly id: string;
  readonly seq: number;
  readonly match: "add" | "change" | "changeIndex" | "remove";
  readonly key: unknown;
  readonly version: number;
  readonly index?: number | null;
  readonly old_index?: number | null;
  readonly document?: unknown;
  readonly omitted?: "size";
  readonly reason?: "deleted" | "left";
  readonly txn?: { readonly id: string; readonly index: number; readonly count: number };
  readonly resume?: string;
}

export interface ReadyFrame {
  readonly type: "ready";
  readonly id: string;
  readonly resume?: string;
}

export interface ResetFrame {
  readonly type: "reset";
  readonly id: string;
  readonly reason: string;
}

export interface StatusFrame {
  readonly type: "status";
  readonly id: string;
  readonly state: "stale" | "live";
  readonly reason?: string;
}

export interface EndFrame {
  readonly type: "end";
  readonly id: string;
  readonly error: Problem | null;
}

export interface ErrorFrame {
  readonly type: "error";
  readonly id: string | null;
  readonly error: Problem;
}

/** Frames about a subscription. */
export type SubscriptionFrame =
  | ResultFrame
  | EventFrame
  | ReadyFrame
  | ResetFrame
  | StatusFrame
  | EndFrame;

export type Frame =
  | SubscriptionFrame
  | ErrorFrame
  | { readonly type: "ack"; readonly id: string }
  | { readonly type: "pong"; readonly id: string | null }
  | { readonly type: "heartbeat" }
  | { readonly type: "welcome"; readonly connection: string; readonly heartbeat_ms: number }
  | { readonly type: "goodbye"; readonly reconnect_in_ms: number };
