/** The state of the wizard: the file, how it is read, and what becomes of its columns. */

import { useDeferredValue, useState } from "react";
import { type ColumnChoice, choicesFor, mappedColumns, problemOf } from "./columns";
import { type Dialect, formatOf } from "./files";
import type { ImportTarget } from "./target";
import { hasPreview, type Preview, usePreview } from "./usePreview";

export function useWizard(target: ImportTarget) {
  const [file, setFile] = useState<File | null>(null);
  const [dialect, setDialect] = useState<Dialect | null>(null);
  const [edited, setEdited] = useState<readonly ColumnChoice[] | null>(null);
  const plain = usePreview(target.previewPath, file, dialect, null);
  const namesTables = plain.data !== undefined && linesNameTables(plain.data, target);
  const found = plain.data === undefined ? null : choicesFor(plain.data.columns, target.fields);
  const choices = namesTables ? null : (edited ?? found);
  const isTyped = target.fields === null;
  const problem = choices === null ? null : problemOf(choices, target.fields);
  const shown = useDeferredValue(problem === null ? choices : null);
  const mapped = usePreview(
    target.previewPath,
    shown === null ? null : file,
    dialect,
    shown === null ? null : mappedColumns(shown, true),
  );

  async function pick(picked: File) {
    setEdited(null);
    setDialect(null);
    setFile(picked);
    const isTabbed = picked.name.toLowerCase().endsWith(".tsv");
    const delimiter = isTabbed ? "tab" : null;
    setDialect({ format: await formatOf(picked), delimiter, hasHeader: true });
  }

  function changeDialect(change: Partial<Dialect>) {
    setEdited(null);
    setDialect(dialect && { ...dialect, ...change });
  }

  function changeColumn(name: string, change: Partial<ColumnChoice>) {
    const next = choices?.map((choice) =>
      choice.name === name ? { ...choice, ...change } : choice,
    );
    setEdited(next ?? null);
  }

  /** Makes another column the key, or none. */
  function chooseKey(key: string, name: string | null) {
    const next = choices?.map((choice) => {
      if (choice.name === name) return { ...choice, to: key, isSkipped: false };
      return choice.to === key ? { ...choice, to: freeName(choice, key) } : choice;
    });
    setEdited(next ?? null);
  }

  const isKnown = dialect !== null && target.formats.includes(dialect.format);
  const isReady = isKnown && (namesTables || !hasPreview(dialect) || choices !== null);
  return {
    ...{ file, dialect, choices, problem, namesTables, isKnown },
    ...{ pick, changeDialect, changeColumn, chooseKey },
    error: plain.error ?? mapped.error,
    preview: mapped.data ?? plain.data ?? null,
    delimiter: dialect?.delimiter ?? plain.data?.delimiter ?? ",",
    canImport: isReady && problem === null && plain.error === null,
    columns: choices === null ? null : mappedColumns(choices, isTyped),
  };
}

export type Wizard = ReturnType<typeof useWizard>;

function freeName({ name }: ColumnChoice, key: string): string {
  return name === key ? `${name}_1` : name;
}

/** Whether each line names its table, as in `{"orders": {…}}`. */
function linesNameTables({ columns }: Preview, { lineMembers }: ImportTarget): boolean {
  return (
    lineMembers.length > 0 &&
    columns.length > 0 &&
    columns.every(({ name }) => lineMembers.includes(name))
  );
}
