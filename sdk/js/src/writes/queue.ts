/**
 * Writes that wait for a connection, however long it takes, and survive the program.
 *
 * They are sent one by one in the order in which they were made. A write that the server rejects is
 * reverted and removed; after a network failure nothing changes until the next attempt. The
 * idempotency key makes a write that was sent twice take effect once, as long as the server keeps
 * keys: an older write whose outcome is unknown is abandoned instead.
 */

import { backoffMs } from "../backoff.js";
import type { Clock, Timer } from "../clock.js";
import { asRillbaseError, RillbaseError, TimeoutError } from "../errors.js";
import type { CallOptions, Http } from "../http/http.js";
import type { LocalWrites, Pending } from "../local/writes.js";
import { type Job, jobsText, readJobs } from "./job.js";
import { confirmAll, type Outbox } from "./outbox.js";
import type { QueueStorage } from "./storage.js";

/** The server remembers idempotency keys for 24 hours. */
const REMEMBERED_MS = 23 * 60 * 60 * 1000;

interface Entry {
  job: Job;
  readonly pending: readonly Pending[];
  readonly settle: (body: unknown) => void;
  readonly fail: (error: unknown) => void;
}

export interface QueueOptions {
  readonly http: Http;
  readonly local: LocalWrites;
  readonly clock: Clock;
  readonly storage: QueueStorage;
  /** Called with rejected writes of an earlier run of the program. */
  readonly refused: (error: RillbaseError) => void;
}

export class QueueOutbox implements Outbox {
  private entries: Entry[] = [];
  private readonly loaded: Promise<void>;
  private saving: Promise<void> = Promise.resolve();
  private isRunning = false;
  private isClosed = false;
  private failures = 0;
  private pause: { readonly timer: Timer; readonly end: () => void } | undefined;

  constructor(private readonly options: QueueOptions) {
    this.loaded = this.load();
  }

  /** The number of queued writes. */
  get length(): number {
    return this.entries.length;
  }

  async submit(job: Job, _options: CallOptions): Promise<unknown> {
    const pending = this.options.local.begin(job.operations);
    try {
      await this.loaded;
    } catch (error) {
      this.options.local.undo(pending);
      throw error;
    }
    return new Promise((settle, fail) => {
      this.entries.push({ job, pending, settle, fail });
      this.save();
      void this.run();
    });
  }

  /** Makes the next attempt now: the network is available again. */
  retryNow(): void {
    this.pause?.end();
  }

  close(): void {
    this.isClosed = true;
    this.pause?.end();
  }

  private async load(): Promise<void> {
    const { storage, local, refused } = this.options;
    for (const job of readJobs(await storage.load())) {
      const pending = local.begin(job.operations);
      const fail = (error: unknown) => refused(asRillbaseError(error));
      this.entries.push({ job, pending, settle: () => undefined, fail });
    }
    void this.run();
  }

  private async run(): Promise<void> {
    if (this.isRunning) return;
    this.isRunning = true;
    for (let entry = this.entries[0]; entry !== undefined && !this.isClosed; ) {
      if (await this.attempt(entry)) {
        this.entries.shift();
        this.save();
      }
      entry = this.entries[0];
    }
    this.isRunning = false;
  }

  /** Tries to send a write; true: it has succeeded or was rejected. */
  private async attempt(entry: Entry): Promise<boolean> {
    const { http, local, clock } = this.options;
    try {
      this.mark(entry);
      await this.saving;
      const body = await http.call(entry.job.request);
      this.failures = 0;
      confirmAll(local, entry.job, entry.pending, body);
      entry.settle(body);
      return true;
    } catch (error) {
      if (isTemporary(error)) {
        this.failures += 1;
        await this.sleep(backoffMs(this.failures, clock.random()));
        return false;
      }
      local.undo(entry.pending);
      entry.fail(error);
      return true;
    }
  }

  /** Records when a write was first sent; throws if it is too late to send it again. */
  private mark(entry: Entry): void {
    const now = this.options.clock.now();
    if (entry.job.sentAtMs === undefined) {
      entry.job = { ...entry.job, sentAtMs: now };
      this.save();
    } else if (now - entry.job.sentAtMs > REMEMBERED_MS) {
      throw new RillbaseError(
        "outcome_unknown",
        "The write was sent more than a day ago without a response; it may have been applied.",
      );
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.options.clock.cancel(this.pause?.timer);
        this.pause = undefined;
        resolve();
      };
      this.pause = { timer: this.options.clock.after(ms, end), end };
    });
  }

  private save(): void {
    const text = () => jobsText(this.entries.map(({ job }) => job));
    const saved = this.saving.then(() => this.options.storage.save(text()));
    // A full storage must not stop the writes themselves.
    this.saving = saved.catch((error: unknown) => this.options.refused(asRillbaseError(error)));
  }
}

function isTemporary(error: unknown): boolean {
  return (error instanceof RillbaseError && error.isTemporary) || error instanceof TimeoutError;
}
