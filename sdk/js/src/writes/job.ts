/** A write as a call, and its effect on documents. */

import { decodeTyped } from "../ejson/decode.js";
import { encode } from "../ejson/encode.js";
import { idKey } from "../ejson/path.js";
import type { Request } from "../http/http.js";
import { isPlain } from "../local/paths.js";
import { type Confirmation, confirmationOf, type Operation } from "../local/writes.js";

export interface Job {
  readonly request: Request & { readonly idempotencyKey: string };
  readonly operations: readonly Operation[];
  /** When it was first sent, if it was: milliseconds since the epoch. */
  readonly sentAtMs?: number;
}

/** Writes that share a lane are sent one after the other. */
export function lanesOf(job: Job): string[] {
  const lanes = job.operations.map(({ collection, id }) => `${collection}/${idKey(id)}`);
  return [...new Set(lanes)];
}

/** Returns what the response reports of each operation. */
export function confirmations(job: Job, body: unknown): Confirmation[] {
  const results = isPlain(body) && Array.isArray(body.results) ? body.results : [body];
  return job.operations.map((_, place) => confirmationOf(results[place]));
}

/** Returns a job as text for the storage. */
export function jobsText(jobs: readonly Job[]): string {
  return JSON.stringify(jobs.map((job) => ({ ...job, operations: encode(job.operations) })));
}

/** Parses the text that `jobsText` wrote; an empty list if there is none. */
export function readJobs(text: string | null): Job[] {
  if (text === null || text === "") return [];
  const jobs = JSON.parse(text) as Job[];
  return jobs.map((job) => ({ ...job, operations: decodeTyped(job.operations) as Operation[] }));
}
