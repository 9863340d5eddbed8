/** How entries of the request log are worded and coloured. */

import type { RequestEntry } from "../../api/types";
import type { CallerNames } from "./callers";

const CLOSE_CODES = 1_000;
const NORMAL_CLOSURES: readonly number[] = [1000, 1001, 1012];

export type Tone = "good" | "warn" | "bad" | "";

/** Returns the colour of a status: red if it is the server's fault, amber if the client's. */
export function toneOf(status: number): Tone {
  if (status >= CLOSE_CODES) {
    if (NORMAL_CLOSURES.includes(status)) return "";
    return status === 1011 || status === 4500 ? "bad" : "warn";
  }
  if (status >= 500) return "bad";
  if (status >= 400) return "warn";
  return status >= 200 && status < 300 ? "good" : "";
}

const KINDS: Readonly<Record<RequestEntry["kind"], string>> = {
  request: "Request",
  message: "WebSocket message",
  opened: "Connection opened",
  closed: "Connection closed",
};

export function kindText({ kind, method }: RequestEntry): string {
  if (method !== "WS") {
    if (kind === "opened") return "Event stream opened";
    if (kind === "closed") return "Event stream closed";
  }
  return KINDS[kind];
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** A duration with two or three digits: `0.84 ms`, `12.3 ms`, `2.5 s`, `3 min`. */
export function durationText(ms: number): string {
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  if (ms < 100) return `${ms.toFixed(1)} ms`;
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${(ms / SECOND_MS).toFixed(1)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  return `${(ms / HOUR_MS).toFixed(1)} h`;
}

const SHOWN_ID_CHARS = 8;

/** The caller by name, or with enough of the id to distinguish callers. */
export function callerText(actor: string, names: CallerNames): string {
  const name = names.get(actor);
  if (name !== undefined) return name;
  const [kind = "", ...rest] = actor.split(":");
  const id = rest.join(":");
  const short = kind === "end_user" ? id.split("|").at(-1) : id.slice(-SHOWN_ID_CHARS);
  return `${kind.replace("_", " ")} ${short ?? ""}`.trim();
}
