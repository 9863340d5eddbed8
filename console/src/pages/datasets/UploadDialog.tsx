/** Uploads a file to a dataset and reports the outcome. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { RowOperation, Upload } from "rillbase";
import { sessionHeaders } from "../../api/control";
import { useTenant } from "../../api/tenant";
import { type Progress, upload } from "../../api/upload";
import { Dialog } from "../../ui/Dialog";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field, Select, sameText } from "../../ui/Field";
import { FilePick } from "../../ui/FilePick";
import { Icon } from "../../ui/Icon";
import { UploadProgress } from "../../ui/UploadProgress";
import type { Dataset } from "./types";

const LINES = "application/x-ndjson";
const TYPES: Readonly<Record<string, string>> = {
  ndjson: LINES,
  jsonl: LINES,
  json: LINES,
  arrow: "application/vnd.apache.arrow.stream",
  arrows: "application/vnd.apache.arrow.stream",
  parquet: "application/vnd.apache.parquet",
};
const OPERATIONS: readonly (readonly [RowOperation, string])[] = [
  ["insert", "insert rows, replacing those with the same key"],
  ["update", "update the columns in the file"],
  ["delete", "delete rows by key"],
];

interface UploadProps {
  readonly dataset: Dataset;
  readonly onClose: () => void;
}

export function UploadDialog({ dataset, onClose }: UploadProps) {
  const tables = Object.keys(dataset.tables);
  const [file, setFile] = useState<File | null>(null);
  const [table, setTable] = useState(tables[0] ?? "");
  const [op, setOp] = useState<RowOperation>("insert");
  const { send, progress, done, error } = useUpload(dataset.name);
  const type = file === null ? undefined : TYPES[ending(file.name)];
  const query = type === LINES ? "" : `?${new URLSearchParams({ table, op })}`;
  return (
    <Dialog
      title={`Upload to ${dataset.name}`}
      lead="Queries see all rows of an upload or none."
      onClose={onClose}
    >
      <div className="body">
        <FilePick
          file={file}
          accept=".ndjson,.jsonl,.json,.arrow,.arrows,.parquet"
          onPick={setFile}
        />
        <FileHint file={file} type={type} table={table} />
        {type !== undefined && type !== LINES && (
          <div className="upload-fields">
            <Field label="Table">
              <Select options={sameText(tables)} value={table} onChange={setTable} />
            </Field>
            <Field label="Row operation">
              <Select options={OPERATIONS} value={op} onChange={setOp} />
            </Field>
          </div>
        )}
        {progress !== null && <UploadProgress progress={progress} rest="Checking rows…" />}
        {done !== null && <Done upload={done} />}
        {error !== null && <ErrorNotice error={error} />}
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          {done === null ? "Cancel" : "Close"}
        </button>
        {done === null && (
          <button
            type="button"
            className="button main"
            disabled={file === null || type === undefined || progress !== null}
            onClick={() => file !== null && type !== undefined && send(file, type, query)}
          >
            Upload
          </button>
        )}
      </footer>
    </Dialog>
  );
}

interface FileHintProps {
  readonly file: File | null;
  readonly type: string | undefined;
  readonly table: string;
}

function FileHint({ file, type, table }: FileHintProps) {
  if (file === null) {
    return (
      <p className="soft">
        Parquet, an Arrow stream, or one JSON object per line that names its table:{" "}
        <code>{`{"${table}": {…}}`}</code>
      </p>
    );
  }
  if (type !== undefined) return null;
  return <p className="wrong">The file's name must end in .ndjson, .arrow or .parquet.</p>;
}

function ending(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1).toLowerCase();
}

function Done({ upload: { rows, state } }: { readonly upload: Upload }) {
  return (
    <div className="notice" role="status">
      <Icon name="check" />
      <span className="grow">
        {rows.toLocaleString("en")} rows uploaded (state {state}). Queries see them now.
      </span>
    </div>
  );
}

/** Sends a file under one key, so that what is sent again after a break counts once. */
function useUpload(dataset: string) {
  const { slug } = useTenant();
  const client = useQueryClient();
  const [progress, setProgress] = useState<Progress | null>(null);
  const [done, setDone] = useState<Upload | null>(null);
  const [error, setError] = useState<unknown>(null);
  const sent = useRef({ what: "", key: "" });
  const closed = useRef(new AbortController());
  useEffect(() => {
    const controller = new AbortController();
    closed.current = controller;
    return () => controller.abort();
  }, []);
  async function send(file: File, type: string, query: string) {
    const what = [file.name, file.size, file.lastModified, query].join();
    if (sent.current.what !== what) sent.current = { what, key: crypto.randomUUID() };
    setError(null);
    const { signal } = closed.current;
    try {
      const made = await upload<Upload>(`/v1/datasets/${dataset}/uploads${query}`, file, {
        type,
        headers: { ...sessionHeaders(slug), "Idempotency-Key": sent.current.key },
        told: setProgress,
        broken: "The connection was lost. Upload the file again; it takes effect once.",
        signal,
      });
      setDone(made);
      await client.invalidateQueries({ queryKey: [slug, "pipeline", dataset] });
    } catch (thrown) {
      if (!signal.aborted) setError(thrown);
    } finally {
      setProgress(null);
    }
  }
  return { send, progress, done, error };
}
