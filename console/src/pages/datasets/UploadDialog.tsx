/** Uploads a file to a dataset and reports the outcome. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { RowOperation, Upload } from "rillbase";
import { useTenant } from "../../api/tenant";
import type { TargetField, TextType } from "../../imports/columns";
import { ImportWizard } from "../../imports/ImportWizard";
import type { ImportOutcome, ImportTarget } from "../../imports/target";
import { Field, Select, sameText } from "../../ui/Field";
import type { Dataset, Table } from "./types";

const OPERATIONS: readonly (readonly [RowOperation, string])[] = [
  ["insert", "insert rows, replacing those with the same key"],
  ["update", "update the columns in the file"],
  ["delete", "delete rows by key"],
];

const TEXT_TYPE_OF: Readonly<Record<string, TextType>> = {
  bool: "boolean",
  int32: "number",
  int64: "number",
  double: "number",
  date: "date",
  timestamp: "date",
};

interface UploadProps {
  readonly dataset: Dataset;
  readonly onClose: () => void;
}

export function UploadDialog({ dataset, onClose }: UploadProps) {
  const target = useTarget(dataset);
  return <ImportWizard target={target} outcomeOf={outcomeOf} onClose={onClose} />;
}

function useTarget(dataset: Dataset): ImportTarget {
  const { slug } = useTenant();
  const client = useQueryClient();
  const tables = Object.keys(dataset.tables);
  const [table, setTable] = useState(tables[0] ?? "");
  const [op, setOp] = useState<RowOperation>("insert");
  const path = `/v1/datasets/${dataset.name}/uploads`;
  return {
    title: `Upload to ${dataset.name}`,
    lead: "An upload is atomic: queries see all of its rows or none, and one invalid row rejects the file.",
    action: "Upload",
    formats: ["csv", "json", "ndjson", "parquet", "arrow"],
    previewPath: `${path}:preview`,
    importPath: path,
    progressPath: null,
    parameters: { table, op },
    fields: fieldsOf(dataset.tables[table]),
    lineMembers: [...tables, "op", "null"],
    options: (
      <div className="upload-fields">
        <Field label="Table">
          <Select options={sameText(tables)} value={table} onChange={setTable} />
        </Field>
        <Field label="Row operation">
          <Select options={OPERATIONS} value={op} onChange={setOp} />
        </Field>
      </div>
    ),
    broken: "The connection was lost. Upload the file again; it takes effect once.",
    rest: "Checking rows…",
    cancelled: "No row was uploaded.",
    onDone: () => client.invalidateQueries({ queryKey: [slug, "pipeline", dataset.name] }),
  };
}

/** The columns of a table; a type that is none of ours, such as an id, is text. */
function fieldsOf(table: Table | undefined): TargetField[] {
  return Object.entries(table?.columns ?? {}).map(([name, title]) => ({
    name,
    title,
    type: TEXT_TYPE_OF[title] ?? "string",
    isKey: table?.key.includes(name) ?? false,
  }));
}

function outcomeOf({ rows, state }: Upload): ImportOutcome {
  const summary = `${rows.toLocaleString("en")} rows uploaded (state ${state}). Queries see them now.`;
  return { summary, failed: 0, errors: [] };
}
