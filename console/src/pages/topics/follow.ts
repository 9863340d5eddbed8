/** Subscribes to a topic: publications at a place, from an hour ago into the future. */

import { useEffect, useState } from "react";
import { call, sessionHeaders } from "../../api/control";
import { useTenant } from "../../api/tenant";
import type { Topic } from "../../api/types";

export type Area =
  | {
      readonly center: readonly [number, number];
      readonly radius_m?: number;
      readonly radius?: number;
    }
  | { readonly box: readonly [number, number, number, number] };

export interface Publication {
  readonly publication_id: string;
  readonly position: string;
  readonly at: string;
  readonly expires_at: string;
  readonly id?: string;
  readonly geo?: Area;
  readonly data: Readonly<Record<string, unknown>> | null;
}

const POLL_MS = 1_500;
const MAX_SHOWN = 500;

/** What to subscribe to: an id, or the visible part of the map. */
export function placeOf(topic: Topic, id: string): Record<string, string> | null {
  if (topic.kind === "geo") return { geo: JSON.stringify({ box: [-180, -85, 180, 85] }) };
  if (topic.kind === "plane")
    return { geo: JSON.stringify({ box: topic.grid?.bounds ?? [0, 0, 1, 1] }) };
  return id === "" ? null : { id };
}

interface Followed {
  readonly publications: readonly Publication[];
  readonly error: unknown;
  readonly again: () => void;
}

export function usePublications(topic: Topic | undefined, id: string): Followed {
  const { slug } = useTenant();
  const [publications, setPublications] = useState<readonly Publication[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  const place = topic && placeOf(topic, id);
  const address =
    place &&
    `/v1/topics/${topic?.name}/publications?${new URLSearchParams({ ...place, from: "-1h" })}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another round subscribes again.
  useEffect(() => {
    if (!address) {
      setPublications([]);
      return;
    }
    const stop = new AbortController();
    const look = async () => {
      try {
        setPublications(await read(address, slug, stop.signal));
        setError(null);
      } catch (thrown) {
        if (!stop.signal.aborted) setError(thrown);
      }
    };
    look();
    const timer = setInterval(look, POLL_MS);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [address, slug, round]);
  return { publications, error, again: () => setRound((count) => count + 1) };
}

async function read(address: string, slug: string, signal: AbortSignal): Promise<Publication[]> {
  const publications: Publication[] = [];
  let cursor: string | null = null;
  do {
    const more: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: { items: Publication[]; next_cursor: string | null } = await call(
      `${address}&limit=100${more}`,
      {
        headers: sessionHeaders(slug),
        signal,
      },
    );
    publications.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null && publications.length < MAX_SHOWN);
  return publications.reverse();
}
