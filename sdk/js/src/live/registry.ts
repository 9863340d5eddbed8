/** The live queries of a client: equal queries share one. */

import type { Timer } from "../clock.js";
import { LiveQuery, type QueryContext } from "./live-query.js";
import { type QuerySpec, specKey } from "./spec.js";

/** A query without listeners is kept for this time, in case a new listener arrives. */
const LINGER_MS = 1_000;

export class Registry {
  private readonly queries = new Map<string, LiveQuery>();
  private readonly leaving = new Map<string, Timer>();

  constructor(private readonly context: QueryContext) {}

  /** Returns the live query; it subscribes when it has a listener. */
  of(spec: QuerySpec): LiveQuery {
    const key = specKey(spec);
    const existing = this.queries.get(key);
    if (existing !== undefined && existing.snapshot.error === null) return existing;
    const made: LiveQuery = new LiveQuery(spec, this.context, () => this.unused(key, made));
    this.queries.set(key, made);
    this.unused(key, made);
    return made;
  }

  close(): void {
    for (const timer of this.leaving.values()) this.context.clock.cancel(timer);
    for (const query of this.queries.values()) query.close();
    this.queries.clear();
  }

  private unused(key: string, query: LiveQuery): void {
    this.context.clock.cancel(this.leaving.get(key));
    const timer = this.context.clock.after(LINGER_MS, () => {
      if (query.isUsed) return;
      query.close();
      if (this.queries.get(key) === query) this.queries.delete(key);
    });
    this.leaving.set(key, timer);
  }
}
