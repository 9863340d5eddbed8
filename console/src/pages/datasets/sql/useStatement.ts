/** Executes statements, one at a time. */

import { useCallback, useEffect, useRef, useState } from "react";
import type { SqlAnswer, TableRow } from "rillbase";
import { useTenant } from "../../../api/tenant";
import { type StatementInputs, statementOf } from "./statement";

export interface Executed {
  readonly inputs: StatementInputs;
  readonly answer: SqlAnswer<TableRow>;
  readonly tookMs: number;
}

export type Execution =
  | { readonly status: "none" }
  | { readonly status: "running" }
  | { readonly status: "cancelled"; readonly tookMs: number }
  | { readonly status: "failed"; readonly error: unknown; readonly sql: string }
  | ({ readonly status: "done" } & Executed);

/** The server reports its own timeout first. */
const CLIENT_MARGIN_MS = 5_000;

export function useStatement(dataset: string) {
  const { client } = useTenant();
  const [execution, setExecution] = useState<Execution>({ status: "none" });
  const running = useRef<AbortController | null>(null);
  const cancel = useCallback(() => running.current?.abort(), []);
  useEffect(() => cancel, [cancel]);

  async function run(inputs: StatementInputs) {
    cancel();
    const controller = new AbortController();
    running.current = controller;
    setExecution({ status: "running" });
    const began = performance.now();
    const outcome = await client
      .dataset(dataset)
      .sql(statementOf(inputs), {
        signal: controller.signal,
        timeoutMs: Number(inputs.timeout) * 1_000 + CLIENT_MARGIN_MS,
      })
      .then(
        (answer): Execution => {
          return { status: "done", inputs, answer, tookMs: performance.now() - began };
        },
        (error: unknown): Execution =>
          controller.signal.aborted
            ? { status: "cancelled", tookMs: performance.now() - began }
            : { status: "failed", error, sql: inputs.sql },
      );
    if (running.current === controller) setExecution(outcome);
  }
  return { execution, run, cancel };
}
