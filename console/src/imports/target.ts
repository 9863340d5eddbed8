/** What a file is imported into, as the wizard needs to know it. */

import type { ReactNode } from "react";
import type { TargetField } from "./columns";
import type { FileFormat } from "./files";

export interface ImportTarget {
  readonly title: string;
  readonly lead: string;
  /** What the button says. */
  readonly action: "Import" | "Upload";
  readonly formats: readonly FileFormat[];
  readonly previewPath: string;
  readonly importPath: string;
  /** Lists the target's imports, newest first, while the server writes; null: it has no list. */
  readonly progressPath: string | null;
  /** Parameters of the import besides those of the file. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The only fields that columns may become; null: any. */
  readonly fields: readonly TargetField[] | null;
  /** Members of lines that name their own tables; such a file needs no mapping. */
  readonly lineMembers: readonly string[];
  /** Controls of the parameters. */
  readonly options: ReactNode;
  /** What is said when the connection breaks. */
  readonly broken: string;
  /** What remains after the upload. */
  readonly rest: string;
  /** What a cancelled import leaves behind. */
  readonly cancelled: string;
  readonly onDone: () => void;
}

/** A refused record. */
export interface LineError {
  readonly line?: number;
  /** Where the record begins in its line, if a line may have several. */
  readonly column?: number;
  readonly detail: string;
  readonly pointer?: string;
}

/** The outcome of an import. */
export interface ImportOutcome {
  readonly summary: string;
  readonly failed: number;
  readonly errors: readonly LineError[];
}
