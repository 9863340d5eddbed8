/** SQL in the editor: its colours, and completion by the tables of a dataset. */

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  type CompletionSource,
  completionKeymap,
  ifNotIn,
  snippetCompletion,
} from "@codemirror/autocomplete";
import { SQLDialect, schemaCompletionSource } from "@codemirror/lang-sql";
import type { Extension } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import type { SqlColumn, SqlTable } from "./tables";
import { FUNCTIONS, KEYWORDS, quoted, TYPES } from "./words";

const DIALECT = SQLDialect.define({
  keywords: KEYWORDS,
  types: TYPES,
  builtin: FUNCTIONS,
  specialVar: "$?",
  caseInsensitiveIdentifiers: true,
});
/** Columns come before functions, and these before keywords. */
const FUNCTION_BOOST = -1;
const KEYWORD_BOOST = -2;

const WORDS: readonly Completion[] = [
  ...FUNCTIONS.split(" ").map((name) =>
    snippetCompletion(`${name}(\${})`, { label: name, detail: "function", boost: FUNCTION_BOOST }),
  ),
  ...`${KEYWORDS} ${TYPES}`
    .split(" ")
    .map((word) => ({ label: word.toUpperCase(), boost: KEYWORD_BOOST })),
];

export function sqlSupport(tables: readonly SqlTable[]): Extension {
  const tableNames = schemaCompletionSource({ dialect: DIALECT, schema: schemaOf(tables) });
  const words = ifNotIn(
    ["QuotedIdentifier", "String", "LineComment", "BlockComment"],
    wordSource(tables),
  );
  return [
    DIALECT.language,
    [tableNames, words].map((source) =>
      DIALECT.language.data.of({ autocomplete: unlessComplete(source) }),
    ),
    autocompletion({ icons: false }),
    keymap.of(completionKeymap),
  ];
}

function schemaOf(tables: readonly SqlTable[]) {
  return Object.fromEntries(
    tables.map(({ name, columns }) => [
      name,
      {
        self: { label: name, detail: "table", apply: quoted(name) },
        children: columns.map(columnCompletion),
      },
    ]),
  );
}

function columnCompletion({ name, type }: SqlColumn): Completion {
  return { label: name, detail: type, apply: quoted(name) };
}

/** Completes functions, keywords, and the columns of the tables that are named, or else of all. */
function wordSource(tables: readonly SqlTable[]): CompletionSource {
  return (context: CompletionContext) => {
    const word = context.matchBefore(/\w+/);
    const from = word?.from ?? context.pos;
    const isMember = context.state.sliceDoc(0, from).endsWith(".");
    if (isMember || (word === null && !context.explicit)) return null;
    const text = context.state.doc.toString();
    const named = tables.filter(({ name }) => new RegExp(`\\b${name}\\b`, "i").test(text));
    const columns = new Map<string, Completion>();
    for (const table of named.length === 0 ? tables : named) {
      for (const column of table.columns) {
        if (!columns.has(column.name)) columns.set(column.name, columnCompletion(column));
      }
    }
    return { from, options: [...columns.values(), ...WORDS] };
  };
}

/** Enter begins a new line after a word that is complete, although there are longer ones. */
function unlessComplete(source: CompletionSource): CompletionSource {
  return async (context): Promise<CompletionResult | null> => {
    const result = await source(context);
    if (result === null) return null;
    const { from, options } = result;
    const typed = context.state.sliceDoc(from, context.pos).toLowerCase();
    const same = options.filter(({ label }) => label.toLowerCase() === typed);
    const isQuoted = ({ label, apply }: Completion) => typeof apply === "string" && apply !== label;
    if (same.length > 0 && !same.some(isQuoted) && !context.explicit) return null;
    // Without `validFor`, the source is asked again about each character.
    return { from, options };
  };
}
