/** Import and export: a line of Extended JSON for each document, with progress. */

import { useState } from "react";
import { ServerError } from "rillbase";
import { sessionHeaders } from "../../../api/control";
import { useTenant } from "../../../api/tenant";
import { type Progress, upload } from "../../../api/upload";
import { Dialog } from "../../../ui/Dialog";
import { ErrorNotice } from "../../../ui/ErrorNotice";
import { Field, Select } from "../../../ui/Field";
import { FilePick } from "../../../ui/FilePick";
import { Icon } from "../../../ui/Icon";
import { UploadProgress } from "../../../ui/UploadProgress";

interface Job {
  readonly id: string;
  readonly state: "running" | "interrupted" | "done";
  readonly lines: number;
  readonly written: number;
  readonly skipped: number;
  readonly failed: number;
  readonly errors: readonly {
    readonly line?: number;
    readonly detail?: string;
    readonly code?: string;
  }[];
}

interface ImportProps {
  readonly collection: string;
  readonly onClose: () => void;
}

type ImportMode = "insert" | "skip" | "upsert";

const MODES: readonly (readonly [ImportMode, string])[] = [
  ["insert", "report an error"],
  ["skip", "keep the existing document"],
  ["upsert", "replace the existing document"],
];

export function ImportDialog({ collection, onClose }: ImportProps) {
  const [file, setFile] = useState<File | null>(null);
  const [mode, setMode] = useState<ImportMode>("insert");
  const { send, progress, job, error } = useImport(collection);
  return (
    <Dialog
      title={`Import into ${collection}`}
      lead="NDJSON (one document per line) or one JSON array."
      onClose={onClose}
    >
      <div className="body">
        <FilePick file={file} accept=".ndjson,.jsonl,.json" onPick={setFile} />
        <Field label="If the _id already exists">
          <Select options={MODES} value={mode} onChange={setMode} />
        </Field>
        {progress !== null && (
          <UploadProgress progress={progress} rest="Writing the last documents…" />
        )}
        {job !== null && <Result job={job} />}
        {error !== null && <ErrorNotice error={error} />}
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          {job === null ? "Cancel" : "Close"}
        </button>
        {job === null && (
          <button
            type="button"
            className="button main"
            disabled={file === null || progress !== null}
            onClick={() => file !== null && send(file, mode)}
          >
            Import
          </button>
        )}
      </footer>
    </Dialog>
  );
}

function useImport(collection: string) {
  const { slug } = useTenant();
  const [progress, setProgress] = useState<Progress | null>(null);
  const [job, setJob] = useState<Job | null>(null);
  const [error, setError] = useState<unknown>(null);
  async function send(file: File, mode: ImportMode) {
    setError(null);
    setJob(null);
    try {
      const path = `/v1/collections/${collection}/import?mode=${mode}`;
      setJob(
        await upload<Job>(path, await lines(file), {
          type: "application/x-ndjson",
          headers: sessionHeaders(slug),
          told: setProgress,
          broken: "The connection was lost. Import the file again and keep the existing documents.",
        }),
      );
    } catch (thrown) {
      setError(thrown);
    } finally {
      setProgress(null);
    }
  }
  return { send, progress, job, error };
}

function Result({ job }: { readonly job: Job }) {
  return (
    <div className={job.failed > 0 ? "notice warn" : "notice"} role="status">
      <Icon name={job.failed > 0 ? "alert" : "check"} />
      <div className="grow">
        {job.written} written, {job.skipped} skipped, {job.failed} refused.
        <ul>
          {job.errors.slice(0, 5).map((wrong) => (
            <li key={wrong.line}>
              line {wrong.line}: {wrong.detail ?? wrong.code}
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

/** A file that holds one JSON list becomes lines. */
async function lines(file: File): Promise<Blob> {
  const head = (await file.slice(0, 64).text()).trimStart();
  if (!head.startsWith("[")) return file;
  const list: unknown = JSON.parse(await file.text());
  if (!Array.isArray(list)) return file;
  return new Blob(list.map((item) => `${JSON.stringify(item)}\n`));
}

/** Fetches all documents that match and hands them to the browser as a file. */
export async function exportFile(
  slug: string,
  collection: string,
  filter: Record<string, unknown>,
  told: (bytes: number) => void,
): Promise<void> {
  const query =
    Object.keys(filter).length === 0 ? "" : `?filter=${encodeURIComponent(JSON.stringify(filter))}`;
  const headers = { ...sessionHeaders(slug), "Rillbase-EJSON": "canonical" };
  const answer = await fetch(`/v1/collections/${collection}/export${query}`, { headers });
  if (!answer.ok || answer.body === null) throw new ServerError(await answer.json(), answer.status);
  const parts: BlobPart[] = [];
  let bytes = 0;
  const reader = answer.body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    parts.push(read.value);
    bytes += read.value.length;
    told(bytes);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
  link.download = `${collection}.ndjson`;
  link.click();
  URL.revokeObjectURL(link.href);
}
