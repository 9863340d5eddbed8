/**
 * Sends writes: those to the same document in the order in which they were made, others
 * concurrently. Pending writes are visible locally at once, and reverted if they are rejected.
 */

import type { CallOptions, Http } from "../http/http.js";
import type { LocalWrites, Pending } from "../local/writes.js";
import { confirmations, type Job, lanesOf } from "./job.js";

export interface Outbox {
  /** Returns the body of the server's response. */
  submit(job: Job, options: CallOptions): Promise<unknown>;
}

/** Sends immediately; a write that does not reach the server fails. */
export class DirectOutbox implements Outbox {
  private readonly lanes = new Map<string, Promise<unknown>>();

  constructor(
    private readonly http: Http,
    private readonly local: LocalWrites,
    private readonly optimistic: boolean,
  ) {}

  submit(job: Job, options: CallOptions): Promise<unknown> {
    const pending = this.optimistic ? this.local.begin(job.operations) : [];
    const lanes = lanesOf(job);
    const before = lanes.map((lane) => this.lanes.get(lane));
    const sending = this.send(job, options, before, pending);
    // The next write waits for the end of this one, whether it succeeds or fails.
    const end = sending.then(nothing, nothing);
    for (const lane of lanes) this.lanes.set(lane, end);
    end.then(() => {
      for (const lane of lanes) if (this.lanes.get(lane) === end) this.lanes.delete(lane);
    });
    return sending;
  }

  private async send(
    job: Job,
    options: CallOptions,
    before: readonly (Promise<unknown> | undefined)[],
    pending: readonly Pending[],
  ): Promise<unknown> {
    try {
      await Promise.all(before);
      const body = await this.http.call(job.request, options);
      confirmAll(this.local, job, pending, body);
      return body;
    } catch (error) {
      this.local.undo(pending);
      throw error;
    }
  }
}

/** Passes the server's response to the local view. */
export function confirmAll(
  local: LocalWrites,
  job: Job,
  pending: readonly Pending[],
  body: unknown,
): void {
  const confirmed = confirmations(job, body);
  pending.forEach((one, place) => {
    local.confirm(one, confirmed[place] ?? {});
  });
}

function nothing(): void {}
