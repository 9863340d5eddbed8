/**
 * Unsaved changes of the console's pages. They survive a change of the page, and the browser asks
 * before it closes or reloads a page with some. They are held in memory alone.
 */

import { useCallback, useState, useSyncExternalStore } from "react";

export interface Draft {
  readonly text: string;
  /** The text that the changes were made to. */
  readonly base: string;
  /** What was typed into parts of a form and is not valid yet, by the part. */
  readonly unfinished: Readonly<Record<string, string>>;
}

type Change = (before: Draft | null) => Draft | null;

export type HeldDraft = readonly [Draft | null, (change: Change) => void];

const drafts = new Map<string, Draft>();
const listeners = new Set<() => void>();

function set(key: string, draft: Draft | null): void {
  if (draft === null) drafts.delete(key);
  else drafts.set(key, draft);
  if (drafts.size > 0) addEventListener("beforeunload", warn);
  else removeEventListener("beforeunload", warn);
  for (const listener of listeners) listener();
}

function warn(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Forgets all drafts, when their user signs out. */
export function dropDrafts(): void {
  for (const key of [...drafts.keys()]) set(key, null);
}

/** The draft of a page, which is kept when the page is left. */
export function usePageDraft(key: string): HeldDraft {
  const draft = useSyncExternalStore(subscribe, () => drafts.get(key) ?? null);
  const change = useCallback((to: Change) => set(key, to(drafts.get(key) ?? null)), [key]);
  return [draft, change];
}

/** The draft of a dialog, which asks before it is closed. */
export function useDialogDraft(): HeldDraft {
  return useState<Draft | null>(null);
}
