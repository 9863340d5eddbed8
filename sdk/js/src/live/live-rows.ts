/**
 * The rows of an aggregate, kept up to date for listeners. Nothing is written locally here, so the
 * rows are always those of the server.
 */

import { encode } from "../ejson/encode.js";
import type { RillbaseError } from "../errors.js";
import type { Plain } from "../local/paths.js";
import type { Connection } from "./connection.js";
import { type FailureReport, Followed } from "./followed.js";
import type { QueryState } from "./snapshot.js";

/** The current rows of a live query of an aggregate. */
export interface RowsSnapshot<R> {
  /** Ordered by their grouping values. */
  readonly rows: readonly R[];
  readonly state: QueryState;
  /** Whether an answer has arrived. */
  readonly hasAnswer: boolean;
  /** The error that ended it, if the state is `failed`. */
  readonly error: RillbaseError | null;
}

export const NO_ROWS: RowsSnapshot<never> = {
  rows: [],
  state: "connecting",
  hasAnswer: false,
  error: null,
};

export class LiveRows extends Followed {
  /** The last state passed to listeners. A new object whenever it changes. */
  snapshot: RowsSnapshot<unknown> = NO_ROWS;
  private rows: readonly unknown[] = [];
  private readonly listeners = new Set<() => void>();

  constructor(
    /** The members of the message that subscribes. */
    private readonly query: Plain,
    private readonly connectionOf: Connection,
    private readonly report: FailureReport,
  ) {
    super();
  }

  /** Calls the listener whenever `snapshot` has changed. Returns a function that stops this. */
  listen(listener: () => void): () => void {
    const isFirst = this.listeners.size === 0;
    this.listeners.add(listener);
    if (isFirst) {
      this.error = null;
      this.connectionOf.attach(this);
    }
    return () => {
      if (this.listeners.delete(listener) && this.listeners.size === 0) {
        this.connectionOf.detach(this);
        this.notReady();
      }
    };
  }

  protected members(): Record<string, unknown> {
    return encode(this.query) as Plain;
  }

  override failed(error: RillbaseError): void {
    super.failed(error);
    if (this.listeners.size > 0) {
      this.report(`query on the aggregate "${this.query.aggregate}"`, error);
    }
  }

  protected answerChanged(): void {
    this.rows = this.view.rows.map(({ document }) => document);
  }

  protected show(): void {
    const { rows, error, snapshot, state } = this;
    const { hasResult: hasAnswer } = this.view;
    const isSame =
      snapshot.rows === rows &&
      snapshot.state === state &&
      snapshot.hasAnswer === hasAnswer &&
      snapshot.error === error;
    if (isSame) return;
    this.snapshot = { rows, state, hasAnswer, error };
    for (const listener of [...this.listeners]) listener();
  }
}
