/** Which column of a file becomes which field, as the wizard edits it and as the server reads it. */

export type TextType = "string" | "number" | "boolean" | "date" | "json" | "objectId";

/** A column as the server reads it. */
export interface MappedColumn {
  readonly from: string;
  readonly to: string;
  readonly type?: TextType;
}

/** A column of a file, as a preview describes it. */
export interface FileColumn {
  readonly name: string;
  readonly to: string;
  /** Null for JSON and Parquet, whose values have types. */
  readonly type: TextType | null;
  readonly values: readonly string[];
  /** The type that a Parquet file declares. */
  readonly file_type?: string;
}

/** What becomes of a column. */
export interface ColumnChoice {
  readonly name: string;
  readonly values: readonly string[];
  readonly to: string;
  /** Null: values keep their types. */
  readonly type: TextType | null;
  readonly isSkipped: boolean;
  /** The type that the file declares, if it does. */
  readonly fileType?: string;
}

/** A field that a column may become. */
export interface TargetField {
  readonly name: string;
  readonly type: TextType;
  /** The type as the table names it. */
  readonly title: string;
  readonly isKey: boolean;
}

export const TEXT_TYPES: readonly (readonly [TextType, string])[] = [
  ["string", "Text"],
  ["number", "Number"],
  ["boolean", "Boolean"],
  ["date", "Date"],
  ["json", "JSON"],
  ["objectId", "ObjectId"],
];

/** Returns what becomes of columns by default: fields of the same names, if only some exist. */
export function choicesFor(
  columns: readonly FileColumn[],
  fields: readonly TargetField[] | null,
): ColumnChoice[] {
  return columns.map(({ name, to, type, values, file_type }) => {
    const declared = file_type === undefined ? {} : { fileType: file_type };
    if (fields === null) return { name, values, to, type, isSkipped: false, ...declared };
    const field = fields.find((known) => plain(known.name) === plain(name));
    const target = { to: field?.name ?? "", type: field?.type ?? null };
    return { name, values, ...target, isSkipped: field === undefined, ...declared };
  });
}

/** The columns that the server is to read. `isTyped`: the target does not determine the types. */
export function mappedColumns(
  choices: readonly ColumnChoice[],
  isTyped: boolean,
): readonly MappedColumn[] {
  const kept = choices.filter(({ isSkipped }) => !isSkipped);
  return kept.map(({ name, to, type }) => ({
    from: name,
    to: to.trim(),
    ...(isTyped && type !== null ? { type } : {}),
  }));
}

/** Says why these choices cannot be imported; null if they can. */
export function problemOf(
  choices: readonly ColumnChoice[],
  fields: readonly TargetField[] | null,
): string | null {
  const targets = choices.filter(({ isSkipped }) => !isSkipped).map(({ to }) => to.trim());
  if (targets.length === 0) return "Choose at least one column.";
  if (targets.includes("")) return "Name the field of each column, or skip the column.";
  const twice = targets.find((target, place) => targets.indexOf(target) !== place);
  if (twice !== undefined) return `Two columns become ${twice}.`;
  const missing = fields?.find(({ name, isKey }) => isKey && !targets.includes(name));
  return missing === undefined ? null : `Choose the column of the key ${missing.name}.`;
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}
