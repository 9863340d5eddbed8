/** Pages that are loaded when they are first opened. */

import { type ComponentType, type LazyExoticComponent, lazy } from "react";

/** A part of the console itself could not be fetched: the server is away, or has been upgraded. */
export class PageLoadError extends Error {
  override readonly name = "PageLoadError";

  constructor(cause: unknown) {
    super(
      "This page could not be loaded. Check that Rillbase is running and that this browser can reach it.",
      {
        cause,
      },
    );
  }
}

/** Like React's `lazy`, with an error that people understand. */
// biome-ignore lint/suspicious/noExplicitAny: as in the declaration of `lazy`.
export function lazyPage<T extends ComponentType<any>>(
  load: () => Promise<{ default: T }>,
): LazyExoticComponent<T> {
  return lazy(async () => {
    try {
      return await load();
    } catch (error) {
      throw new PageLoadError(error);
    }
  });
}

/**
 * Reloads the console once the server answers. Importing again is not enough: a style sheet that
 * failed to load is not requested a second time.
 */
export async function reloadWhenReachable(): Promise<void> {
  const answer = await fetch(location.pathname, { method: "HEAD", cache: "no-store" }).catch(
    () => null,
  );
  if (answer?.ok === true) location.reload();
}
