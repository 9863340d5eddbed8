/** The delivery trace of a version of a document, for one subscription. */

import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/control";
import { useTenant } from "../../api/tenant";

export type StepState = "passed" | "stopped" | "waiting" | "unknown";

/** A part of a filter, and its result for the document. */
export interface Reason {
  readonly how: "all" | "any" | "test";
  readonly holds: boolean | null;
  readonly decides: boolean;
  readonly clause: string;
  readonly sentence: string;
  readonly found: readonly string[];
  readonly more: boolean;
  readonly parts: readonly Reason[];
}

export interface Step {
  readonly stage: string;
  readonly state: StepState;
  readonly title: string;
  readonly detail: string;
  readonly at: string | null;
  readonly facts: Readonly<Record<string, unknown>> & {
    readonly explanation?: { readonly reason: Reason; readonly cut: boolean };
    readonly time_is_approximate?: boolean;
  };
}

export interface Told {
  readonly document: unknown;
  readonly version: number | null;
  readonly newest_version: number | null;
  readonly verdict: string;
  readonly summary: string;
  readonly steps: readonly Step[];
}

export interface Asked {
  readonly document: string;
  readonly version: string;
}

/** Asks once for each question; `at` distinguishes repeated ones. */
export function useWhy(subscription: string, question: (Asked & { readonly at: number }) | null) {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, "why", subscription, question],
    enabled: question !== null,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const { document = "", version = "" } = question ?? {};
      const query = new URLSearchParams({
        document: segment(document),
        ...(version === "" ? {} : { version }),
      });
      return await call<Told>(
        `${api}/subscriptions/${encodeURIComponent(subscription)}/why?${query}`,
      );
    },
  });
}

const OBJECT_ID = /^[0-9a-f]{24}$/i;

/** An `_id` as people type it, in the form that addresses have: text stands for itself. */
export function segment(typed: string): string {
  const text = typed.trim();
  if (OBJECT_ID.test(text)) return text;
  // Numbers, objects and quoted text are Extended JSON; whatever else is the text itself.
  if (isJson(text)) return `~${text}`;
  return needsMark(text) ? `~${JSON.stringify(text)}` : text;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function needsMark(text: string): boolean {
  return text === "" || text === "." || text === ".." || text.startsWith("~");
}
