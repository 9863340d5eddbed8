/** The types of rows. This is type-checked and never run. */

import type { Decimal128, Document, Long, Query } from "../src/index.js";

interface Todo extends Document {
  readonly _id: string;
  readonly owner: string;
  readonly rank: number;
}

interface Person {
  readonly name: string;
}

export function rows(todos: Query<Todo>): void {
  const grouped = todos.group(["owner", "at.day"], {
    todos: { op: "count" },
    ranks: { op: "sum", field: "rank" },
    first: { op: "min", field: "rank" },
  });
  grouped.onSnapshot(({ documents }) => {
    for (const row of documents) {
      const owner: string | null = row.owner;
      const day: unknown = row.at;
      const [count, least]: [number, number | null] = [row.todos, row.first];
      const sum: number | Long | Decimal128 = row.ranks;
      // @ts-expect-error -- rows have nothing of this name.
      const none = row.nobody.name;
      void [owner, day, count, least, sum, none];
    }
  });
  todos.lookup("people", "owner", "owner").onSnapshot(({ documents }) => {
    for (const { owner, rank } of documents) {
      // @ts-expect-error -- a document has taken the place of the text.
      const text: string = owner;
      const exact: number = rank;
      void [text, exact];
    }
  });
  const typed = todos.lookup<Todo & { by: Person | null }>("people", "owner", "by");
  typed.onSnapshot(({ documents }) => {
    const names: (string | undefined)[] = documents.map(({ by }) => by?.name);
    void names;
  });
}
