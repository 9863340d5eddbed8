/** A statement as it is typed: its parameters, the call that executes it, the place of an error. */

import { encode, parseTyped, type SqlStatement } from "rillbase";
import { failureOf } from "../../../api/failure";
import type { Pair } from "../../../shell/useAddressState";
import type { LineError } from "../../../ui/JsonEditor";
import { freshnessOf } from "../types";

export interface StatementInputs {
  readonly sql: string;
  /** The texts of the parameters' values, by their names. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly freshness: string;
  readonly limit: string;
  readonly timeout: string;
  readonly engine: string;
}

export const MAX_TIMEOUT_S = 300;
export const LIMITS = ["100", "1000", "10000"] as const;
export const DEFAULTS: StatementInputs = {
  sql: "",
  parameters: {},
  freshness: "0",
  limit: "1000",
  timeout: "30",
  engine: "auto",
};
/** What executes a statement. By default, the number of rows that it reads decides. */
export const ENGINES = [
  ["auto", "automatic"],
  ["duckdb", "DuckDB"],
  ["spark", "Spark"],
] as const;

/** What may contain a `$` or a `?` that is no parameter, and last the parameters themselves. */
const TOKENS = new RegExp(
  [
    /--.*/, // a comment
    /\/\*[\s\S]*?\*\//,
    /E'(?:\\[\s\S]|[^'\\])*'/, // a text
    /'(?:[^']|'')*'/,
    /"(?:[^"]|"")*"/,
    /\$((?:[a-z_]\w*)?)\$[\s\S]*?\$\1\$/,
    /[a-z_][\w$]*/, // a name
    /\$(\w+)|(\?)/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gi",
);

/** Returns the names of a statement's parameters; each `?` has the next number. */
export function parameterNames(sql: string): string[] {
  const names = new Set<string>();
  let marks = 0;
  for (const [, , name, mark] of sql.matchAll(TOKENS)) {
    if (mark !== undefined) marks += 1;
    if (name !== undefined) names.add(name);
    else if (mark !== undefined) names.add(String(marks));
  }
  return [...names].sort((a, b) => Number(a) - Number(b));
}

/** Returns a value that is typed as Extended JSON, or as a text. */
function readValue(text: string): unknown {
  try {
    return parseTyped(text);
  } catch {
    return text;
  }
}

/** Returns what `readValue` reads as the value. */
function textOfValue(value: unknown): string {
  return typeof value === "string" && readValue(value) === value ? value : JSON.stringify(value);
}

/** Returns the members of the call that executes a statement, as they are saved. */
export function statementOf(inputs: StatementInputs): SqlStatement {
  const { sql, freshness, limit, timeout, engine } = inputs;
  const parameters = parametersOf(inputs);
  return {
    sql,
    ...(parameters === undefined ? {} : { parameters }),
    freshness: freshnessOf(freshness),
    limit: Number(limit),
    timeout: Number(timeout),
    ...(engine === DEFAULTS.engine ? {} : { engine: engine as Engine }),
  };
}

type Parameters = NonNullable<SqlStatement["parameters"]>;
type Engine = NonNullable<SqlStatement["engine"]>;

function parametersOf({ sql, parameters }: StatementInputs): Parameters | undefined {
  const names = parameterNames(sql);
  if (names.length === 0) return undefined;
  const value = (name: string) => encode(readValue(parameters[name] ?? ""));
  if (names.some((name) => Number.isNaN(Number(name))))
    return Object.fromEntries(names.map((name) => [name, value(name)]));
  const count = Math.max(...names.map(Number));
  return Array.from({ length: count }, (_, index) => value(String(index + 1)));
}

/** Returns what was typed for the members of a saved statement. */
export function inputsOf(members: Readonly<Record<string, unknown>>): StatementInputs {
  const { sql, parameters = {}, freshness, limit, timeout, engine } = members;
  const isList = Array.isArray(parameters);
  const texts = Object.entries(parameters as object).map(([name, value]) => [
    isList ? String(Number(name) + 1) : name,
    textOfValue(value),
  ]);
  return {
    sql: String(sql),
    parameters: Object.fromEntries(texts),
    freshness: String(freshness ?? DEFAULTS.freshness),
    limit: String(limit ?? DEFAULTS.limit),
    timeout: String(timeout ?? DEFAULTS.timeout),
    engine: String(engine ?? DEFAULTS.engine),
  };
}

/** A statement of the history. */
export function inputsFrom(entry: string): StatementInputs {
  return { ...DEFAULTS, ...(JSON.parse(entry) as Partial<StatementInputs>) };
}

const MAX_SUMMARY = 60;

/** A statement of the history in one line. */
export function summaryOf(entry: string): string {
  const text = inputsFrom(entry).sql.replace(/\s+/g, " ").trim();
  return text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY)}…` : text;
}

const LINE = /^Line (\d+)(?:, column (\d+))?: ([\s\S]*)$/;

/** Returns the place that an error names in the statement. */
export function lineErrorsOf(error: unknown): readonly LineError[] {
  const match = LINE.exec(failureOf(error).title);
  if (match === null) return [];
  const [, line, column, message = ""] = match;
  return [{ line: Number(line), column: column === undefined ? null : Number(column), message }];
}

const OPTIONS = ["freshness", "limit", "timeout", "engine"] as const;

/** The typed statement in the address; null if it is the one that the page opens with. */
export const STATEMENT_ADDRESS = {
  names: ["sql", "parameter", ...OPTIONS],
  read: (params: URLSearchParams): StatementInputs | null => {
    const sql = params.get("sql");
    if (sql === null) return null;
    const options = OPTIONS.map((name) => [name, params.get(name) ?? DEFAULTS[name]]);
    return { ...DEFAULTS, ...Object.fromEntries(options), sql, parameters: parametersIn(params) };
  },
  write: (inputs: StatementInputs | null): readonly Pair[] => {
    if (inputs === null) return [];
    const used = parameterNames(inputs.sql).filter((name) => inputs.parameters[name]);
    return [
      ["sql", inputs.sql],
      ...used.map((name): Pair => ["parameter", `${name} ${inputs.parameters[name]}`]),
      ...OPTIONS.filter((name) => inputs[name] !== DEFAULTS[name]).map(
        (name): Pair => [name, inputs[name]],
      ),
    ];
  },
};

function parametersIn(params: URLSearchParams): StatementInputs["parameters"] {
  const pairs = params.getAll("parameter").map((text) => {
    const space = text.indexOf(" ");
    return [text.slice(0, space), text.slice(space + 1)];
  });
  return Object.fromEntries(pairs);
}
