/** What GraphQL clients keep of a live query: its rows, and the position from which to resume. */

/** The selection of documents; clients with a cache also request ids and types. */
export const watch = (document: string) => `
subscription Watch($collection: String!, $resume: String) {
  documents(collection: $collection, sort: [["n", 1]], limit: 100, resume: $resume) {
    kind part items { ${document} }
    match index oldIndex node { ${document} }
  }
}`;

interface Row {
  readonly key: unknown;
  readonly document: unknown;
}

interface Told {
  readonly kind: "RESULT" | "READY" | "EVENT" | "RESET" | "STATUS";
  readonly part: number | null;
  readonly items: readonly Row[] | null;
  readonly match: "ADD" | "CHANGE" | "CHANGE_INDEX" | "REMOVE" | null;
  readonly index: number | null;
  readonly oldIndex: number | null;
  readonly node: Row | null;
}

/** One answer of the subscription, as all clients hand it on. */
export interface Answer {
  readonly data?: unknown;
  readonly extensions?: Record<string, unknown> | undefined;
}

export function report(name: string, members: object): void {
  process.stdout.write(`${JSON.stringify({ name, ...members })}\n`);
}

export class HeldRows {
  resume: string | null = null;
  private rows: Row[] = [];
  private answers = 0;

  /** Takes an answer and reports the rows, and how often they had to be given whole. */
  keep({ data, extensions }: Answer): void {
    if (data) this.apply((data as { documents: Told }).documents);
    const resume = extensions?.resume;
    if (typeof resume === "string") this.resume = resume;
    const documents = this.rows.map((row) => row.document);
    report("rows", { documents, answers: this.answers });
  }

  private apply(told: Told): void {
    if (told.kind === "RESULT") {
      if (told.part === 0) {
        this.rows = [];
        this.answers += 1;
      }
      this.rows.push(...(told.items ?? []));
    } else if (told.kind === "EVENT") {
      if (told.match !== "ADD" && told.oldIndex !== null) this.rows.splice(told.oldIndex, 1);
      if (told.match !== "REMOVE" && told.index !== null && told.node !== null) {
        this.rows.splice(told.index, 0, told.node);
      }
    }
  }
}

const RETRY_MS = 100;

/** Follows again and again, each time from where the rows may go on. */
export async function followForEver(follow: () => Promise<void>): Promise<never> {
  for (;;) {
    try {
      await follow();
    } catch (lost) {
      report("lost", { reason: String(lost) });
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
