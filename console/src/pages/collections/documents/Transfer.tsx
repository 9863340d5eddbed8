/** Import and export: a line of Extended JSON for each document, with progress. */

import { useState } from "react";
import { ServerError } from "rillbase";
import { sessionHeaders } from "../../../api/control";
import { useTenant } from "../../../api/tenant";
import { type Progress, upload } from "../../../api/upload";
import { Dialog } from "../../../ui/Dialog";
import { ErrorNotice } from "../../../ui/ErrorNotice";
import { Field } from "../../../ui/Field";
import { FilePick } from "../../../ui/FilePick";
import { Icon } from "../../../ui/Icon";
import { SentBar } from "../../../ui/SentBar";

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

export function ImportDialog({ collection, onClose }: ImportProps) {
  const { slug } = useTenant();
  const [file, setFile] = useState<File | null>(null);
  const [mode, setMode] = useState("insert");
  const [progress, setProgress] = useState<Progress | null>(null);
  const [job, setJob] = useState<Job | null>(null);
  const [error, setError] = useState<unknown>(null);
  async function begin() {
    if (file === null) return;
    setError(null);
    setJob(null);
    try {
      const path = `/v1/collections/${collection}/import?mode=${mode}`;
      setJob(
        await upload<Job>(path, await lines(file), {
          type: "application/x-ndjson",
          headers: sessionHeaders(slug),
          told: setProgress,
          broken: "The connection broke. Send the file again with “stay as they are”.",
        }),
      );
    } catch (thrown) {
      setError(thrown);
    } finally {
      setProgress(null);
    }
  }
  return (
    <Dialog
      title={`Import into ${collection}`}
      lead="NDJSON, a document a line, or one JSON list."
      onClose={onClose}
    >
      <div className="body">
        <FilePick file={file} accept=".ndjson,.jsonl,.json" onPick={setFile} />
        <Field label="Documents whose _id is there already">
          <select className="select" value={mode} onChange={(event) => setMode(event.target.value)}>
            <option value="insert">are reported</option>
            <option value="skip">stay as they are</option>
            <option value="upsert">are replaced</option>
          </select>
        </Field>
        {progress !== null && (
          <SentBar progress={progress} rest="The last documents are written." />
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
            onClick={begin}
          >
            Import
          </button>
        )}
      </footer>
    </Dialog>
  );
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
