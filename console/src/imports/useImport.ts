/** Sends a file, with progress, until it is imported or cancelled. */

import { useEffect, useRef, useState } from "react";
import { sessionHeaders } from "../api/control";
import { useTenant } from "../api/tenant";
import { type Progress, upload } from "../api/upload";
import type { MappedColumn } from "./columns";
import { type Delimiter, type Dialect, MEDIA_TYPES, parametersOf } from "./files";
import type { ImportOutcome, ImportTarget } from "./target";

interface ImportedFile {
  readonly file: File;
  readonly dialect: Dialect;
  readonly delimiter: Delimiter;
  readonly columns: readonly MappedColumn[] | null;
}

interface ImportFailure {
  readonly file: File;
  readonly error: unknown;
}

export function useImport<T>(target: ImportTarget, outcomeOf: (answer: T) => ImportOutcome) {
  const { slug } = useTenant();
  const [progress, setProgress] = useState<Progress | null>(null);
  const [outcome, setOutcome] = useState<ImportOutcome | null>(null);
  const [failure, setFailure] = useState<ImportFailure | null>(null);
  const [isCancelled, setCancelled] = useState(false);
  const running = useRef<AbortController | null>(null);
  const sent = useRef({ what: "", key: "" });
  useEffect(() => () => running.current?.abort(), []);

  async function send({ file, dialect, delimiter, columns }: ImportedFile) {
    const form = parametersOf({ ...dialect, delimiter }, columns);
    const query = new URLSearchParams({ ...target.parameters, ...form });
    // The same file under the same key is imported once, even if the connection broke before.
    const what = [file.name, file.size, file.lastModified, query].join();
    if (sent.current.what !== what) sent.current = { what, key: crypto.randomUUID() };
    const stop = new AbortController();
    running.current = stop;
    setFailure(null);
    setCancelled(false);
    try {
      const answer = await upload<T>(`${target.importPath}?${query}`, file, {
        type: MEDIA_TYPES[dialect.format],
        headers: { ...sessionHeaders(slug), "Idempotency-Key": sent.current.key },
        onProgress: setProgress,
        broken: target.broken,
        signal: stop.signal,
      });
      setOutcome(outcomeOf(answer));
      target.onDone();
    } catch (thrown) {
      if (stop.signal.aborted) setCancelled(true);
      else setFailure({ file, error: thrown });
    } finally {
      setProgress(null);
    }
  }

  return { send, cancel: () => running.current?.abort(), progress, outcome, failure, isCancelled };
}
