/**
 * Sends writes: those that concern the same document in the order in which they were made, others
 * beside each other. What is on its way is seen locally at once, and undone when it is refused.
 */

import type { CallOptions, Http } from "../http/http.js";
import type { LocalWrites, Pending } from "../local/writes.js";
import { confirmations, type Job, lanesOf } from "./job.js";

export interface Outbox {
  /** Returns the body of the server's answer. */
  submit(job: Job, options: CallOptions): Promise<unknown>;
}

/** Sends at once; a write that does not get through fails. */
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
    // Who comes next waits for the end, good or bad.
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

/** Lets the local view know what the server answered. */
export function confirmAll(
  local: LocalWrites,
  job: Job,
  pending: readonly Pending[],
  body: unknown,
): void {
  const found = confirmations(job, body);
  pending.forEach((one, place) => {
    local.confirm(one, found[place] ?? {});
  });
}

function nothing(): void {}
