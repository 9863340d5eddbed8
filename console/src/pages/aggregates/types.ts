/** An aggregate, as the control plane describes it. */

export interface Measure {
  readonly op: string;
  readonly field?: string;
}

export interface Aggregate {
  readonly id: string;
  readonly name: string;
  readonly dimensions: readonly string[];
  readonly time: { readonly field: string; readonly bucket: string } | null;
  readonly measures: Readonly<Record<string, Measure>>;
  readonly rollups: readonly (readonly string[])[];
  readonly source: { readonly collection: string } | null;
  readonly retention: string | null;
  readonly state: string;
  readonly error: string | null;
  /** The generation of rows that answers queries, if there is one. */
  readonly generation: number | null;
  /** For a view: documents read by the current or the last build. */
  readonly documents_read: number | null;
  readonly created_at: string;
}
