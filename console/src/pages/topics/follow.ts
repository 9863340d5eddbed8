/** Subscribes to a topic: publications at a place, from an hour ago into the future. */

import { useEffect, useState } from "react";
import type { Place, Topic as TopicHandle } from "rillbase";
import { useTenant } from "../../api/tenant";
import type { Topic } from "../../api/types";
import { currentAt, placeOf, type TopicPublication, withPublication } from "./publications";

/** Short, because a subscription whose page has disappeared counts as a subscription until then. */
const RENEWED_AFTER = "+10m";
const EXPIRY_CHECK_MS = 1_000;

interface Followed {
  /** The newest first. */
  readonly publications: readonly TopicPublication[];
  readonly error: unknown;
  /** Whether the subscription receives what is published now. */
  readonly isLive: boolean;
}

export function usePublications(topic: Topic, id: string): Followed {
  const { client } = useTenant();
  const [publications, setPublications] = useState<readonly TopicPublication[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [isLive, setLive] = useState(false);
  useEffect(() => {
    setPublications([]);
    setError(null);
    setLive(false);
    const place = placeOf(topic, id);
    if (place === null) return;
    return follow(client.topic<Readonly<Record<string, unknown>>>(topic.name), place, {
      onPublication: (publication) =>
        setPublications((shown) => withPublication(shown, publication)),
      onLive: setLive,
      onError: setError,
    });
  }, [client, topic, id]);
  useEffect(() => {
    const timer = setInterval(
      () => setPublications((shown) => currentAt(shown, Date.now())),
      EXPIRY_CHECK_MS,
    );
    return () => clearInterval(timer);
  }, []);
  return { publications, error, isLive };
}

interface Listeners {
  readonly onPublication: (publication: TopicPublication) => void;
  readonly onLive: (isLive: boolean) => void;
  readonly onError: (error: unknown) => void;
}

/** Subscribes, renews the subscription at its end, and unsubscribes when the page is closed. */
function follow(
  topic: TopicHandle<Readonly<Record<string, unknown>>>,
  place: Place,
  { onPublication, onLive, onError }: Listeners,
): () => void {
  let unsubscribe = () => {};
  const subscribe = () => {
    unsubscribe();
    unsubscribe = topic.subscribe({ ...place, from: "-1h", to: RENEWED_AFTER }, onPublication, {
      onState: (state) => {
        onLive(state === "live");
        if (state === "ended") subscribe();
      },
      onError,
    });
  };
  const hide = () => unsubscribe();
  // The browser shows a page again that it had stored when another was opened.
  const restore = ({ persisted }: PageTransitionEvent) => {
    if (persisted) subscribe();
  };
  subscribe();
  addEventListener("pagehide", hide);
  addEventListener("pageshow", restore);
  return () => {
    removeEventListener("pagehide", hide);
    removeEventListener("pageshow", restore);
    unsubscribe();
  };
}
