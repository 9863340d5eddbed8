/** SQL in the editor: its colours, and completion by the tables of a dataset. */

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionSource,
  completionKeymap,
  ifNotIn,
  snippetCompletion,
} from "@codemirror/autocomplete";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import type { Extension } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import type { SqlTable } from "./tables";
import { FUNCTIONS, KEYWORDS, quoted, TYPES } from "./words";

const DIALECT = SQLDialect.define({
  keywords: KEYWORDS,
  types: TYPES,
  builtin: FUNCTIONS,
  specialVar: "$?",
  caseInsensitiveIdentifiers: true,
});
/** Names of columns come before functions, and these before keywords. */
const FUNCTION_BOOST = -1;
const KEYWORD_BOOST = -2;

const FUNCTION_COMPLETIONS = FUNCTIONS.split(" ").map((name) =>
  snippetCompletion(`${name}(\${})`, { label: name, detail: "function", boost: FUNCTION_BOOST }),
);

export function sqlSupport(tables: readonly SqlTable[]): Extension {
  const columns = (table: SqlTable) =>
    table.columns.map(({ name, type }) => ({ label: name, detail: type, apply: quoted(name) }));
  return [
    sql({
      dialect: DIALECT,
      schema: Object.fromEntries(
        tables.map((table) => [
          table.name,
          {
            self: { label: table.name, detail: "table", apply: quoted(table.name) },
            children: columns(table),
          },
        ]),
      ),
      upperCaseKeywords: true,
      keywordCompletion: (label) => ({ label, boost: KEYWORD_BOOST }),
    }),
    DIALECT.language.data.of({
      autocomplete: ifNotIn(
        ["QuotedIdentifier", "String", "LineComment", "BlockComment", "."],
        nameSource(tables),
      ),
    }),
    autocompletion({ icons: false }),
    keymap.of(completionKeymap),
  ];
}

/** Completes functions, and the columns of the tables that the statement names, or else of all. */
function nameSource(tables: readonly SqlTable[]): CompletionSource {
  return (context: CompletionContext) => {
    const word = context.matchBefore(/\w+/);
    const before = context.state.sliceDoc(0, word?.from ?? context.pos);
    if (before.endsWith(".") || (word === null && !context.explicit)) return null;
    const text = context.state.doc.toString();
    const named = tables.filter(({ name }) => new RegExp(`\\b${name}\\b`, "i").test(text));
    const columns = columnCompletions(named.length === 0 ? tables : named);
    return {
      from: word?.from ?? context.pos,
      options: [...columns, ...FUNCTION_COMPLETIONS],
      validFor: /^\w*$/,
    };
  };
}

function columnCompletions(tables: readonly SqlTable[]): Completion[] {
  const types = new Map<string, string>();
  for (const { columns } of tables) {
    for (const { name, type } of columns) if (!types.has(name)) types.set(name, type);
  }
  return [...types].map(([name, type]) => ({ label: name, detail: type, apply: quoted(name) }));
}
