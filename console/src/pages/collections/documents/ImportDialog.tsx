/** Imports a file into a collection. */

import { useState } from "react";
import { ImportWizard } from "../../../imports/ImportWizard";
import type { ImportOutcome, ImportTarget, LineError } from "../../../imports/target";
import { Field, Select } from "../../../ui/Field";

interface Job {
  readonly written: number;
  readonly skipped: number;
  readonly failed: number;
  readonly errors: readonly LineError[];
}

type ImportMode = "insert" | "skip" | "upsert";

const MODES: readonly (readonly [ImportMode, string])[] = [
  ["insert", "report an error"],
  ["skip", "keep the existing document"],
  ["upsert", "replace the existing document"],
];

interface ImportProps {
  readonly collection: string;
  readonly onClose: () => void;
}

export function ImportDialog({ collection, onClose }: ImportProps) {
  const [mode, setMode] = useState<ImportMode>("insert");
  const path = `/v1/collections/${collection}/import`;
  const target: ImportTarget = {
    title: `Import into ${collection}`,
    lead: "Each record becomes a document. Records with errors are reported and skipped.",
    action: "Import",
    formats: ["csv", "json", "ndjson", "parquet"],
    previewPath: `${path}:preview`,
    importPath: path,
    progressPath: `${path}s`,
    parameters: { mode },
    fields: null,
    lineMembers: [],
    options: (
      <Field label="If the _id already exists">
        <Select options={MODES} value={mode} onChange={setMode} />
      </Field>
    ),
    broken: "The connection was lost. Import the file again and keep the existing documents.",
    rest: "Writing documents…",
    cancelled: "The documents written so far remain.",
    onDone: () => {},
  };
  return <ImportWizard target={target} outcomeOf={outcomeOf} onClose={onClose} />;
}

function outcomeOf({ written, skipped, failed, errors }: Job): ImportOutcome {
  return { summary: `${written} written, ${skipped} skipped, ${failed} rejected.`, failed, errors };
}
