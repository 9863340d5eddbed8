/** What the documents' page shows, as parameters of its address. Pure functions. */

import { parseTyped, printTyped } from "rillbase";
import { joinWords, readOr, splitWords } from "../../../shell/addressWords";
import type { AddressForm, Pair, Step } from "../../../shell/useAddressState";
import {
  type Condition,
  EVERYTHING,
  type GridQuery,
  type Operator,
  readFilterText,
} from "./gridQuery";
import { lookupsFrom, lookupText } from "./lookups";
import { MAX_ROWS } from "./useLiveDocuments";
import { kindOf } from "./values";

const OPERATOR_NAMES: Readonly<Record<Operator, string>> = {
  "==": "eq",
  "!=": "ne",
  "<": "lt",
  "<=": "lte",
  ">": "gt",
  ">=": "gte",
  in: "in",
  contains: "contains",
  exists: "exists",
};
const OPERATORS = new Map(
  Object.entries(OPERATOR_NAMES).map(([operator, name]) => [name, operator as Operator]),
);

/** More of them are not read from an address. */
const MAX_CONDITIONS = 40;
const MAX_SORT_FIELDS = 20;

/** The query. Another query begins at its first row. */
export const GRID_ADDRESS: AddressForm<GridQuery> = {
  names: ["where", "filter", "sort", "lookup", "row"],
  read: (params) => ({
    conditions: params.getAll("where").slice(0, MAX_CONDITIONS).flatMap(conditionFrom),
    filterText: filterFrom(params),
    sort: params.getAll("sort").slice(0, MAX_SORT_FIELDS).flatMap(sortFrom),
    lookups: lookupsFrom(params.getAll("lookup")),
  }),
  write: ({ conditions, filterText, sort, lookups }, before) => [
    ...conditions.map(
      ({ field, operator, text }): Pair => [
        "where",
        joinWords([field, OPERATOR_NAMES[operator]], text),
      ],
    ),
    ...filterPairs(filterText, before),
    ...sort.map((part): Pair => ["sort", sortText(part)]),
    ...lookups.map((lookup): Pair => ["lookup", lookupText(lookup)]),
  ],
};

function conditionFrom(text: string, place: number): Condition[] {
  const { words: [field = "", name = ""] = [], rest = "" } = splitWords(text, 2) ?? {};
  const operator = OPERATORS.get(name);
  return operator === undefined ? [] : [{ id: String(place), field, operator, text: rest }];
}

function filterFrom(params: URLSearchParams): string {
  const text = params.get("filter") ?? "";
  return isFilter(text) ? text : EVERYTHING.filterText;
}

/** A filter that cannot be read yet is not in effect: the address keeps the one that is. */
function filterPairs(text: string, before: URLSearchParams): Pair[] {
  const written = isFilter(text) ? text : filterFrom(before);
  return written.trim() === "" ? [] : [["filter", written]];
}

function isFilter(text: string): boolean {
  return readOr(() => readFilterText(text)) !== undefined;
}

type SortPart = GridQuery["sort"][number];

/** `-` marks a descending field, and `+` an ascending one whose name begins with a sign. */
function sortText([field, direction]: SortPart): string {
  if (direction === -1) return `-${field}`;
  return /^[-+]/.test(field) ? `+${field}` : field;
}

function sortFrom(text: string): SortPart[] {
  const field = text.replace(/^[-+]/, "");
  return field === "" ? [] : [[field, text.startsWith("-") ? -1 : 1]];
}

/** Typing changes texts; what changes anything else is a decision. */
export function stepBetween(before: GridQuery, after: GridQuery): Step {
  return shapeOf(before) === shapeOf(after) ? "replace" : "push";
}

function shapeOf({ conditions, filterText, sort, lookups }: GridQuery): string {
  const operators = conditions.map(({ operator }) => operator);
  return JSON.stringify([operators, filterText === "", sort, lookups.map(({ from }) => from)]);
}

export type DocumentView = "tree" | "json";

export interface OpenedDocument {
  readonly id: unknown;
  readonly view: DocumentView;
}

/** The document beside the grid. */
export const OPENED_ADDRESS: AddressForm<OpenedDocument | null> = {
  names: ["document", "view"],
  read: (params) => {
    const text = params.get("document");
    const id = text === null ? undefined : idFrom(text);
    if (id === undefined) return null;
    return { id, view: params.get("view") === "json" ? "json" : "tree" };
  },
  write: (opened) => {
    if (opened === null) return [];
    const view: Pair[] = opened.view === "tree" ? [] : [["view", opened.view]];
    return [["document", idText(opened.id)], ...view];
  },
};

/** A string is written as it is, unless it would be read as another value. */
function idText(id: unknown): string {
  const isBare = typeof id === "string" && readOr(() => parseTyped(id)) === undefined;
  return isBare ? id : printTyped(id);
}

/** Lists and operators are no ids: they would find other documents. */
function idFrom(text: string): unknown {
  const id = readOr(() => parseTyped(text)) ?? text;
  const isOperator =
    kindOf(id) === "object" && Object.keys(id).some((name) => name.startsWith("$"));
  return id === "" || isOperator || kindOf(id) === "array" ? undefined : id;
}

/** The first row in view. */
export const ROW_ADDRESS: AddressForm<number> = {
  names: ["row"],
  read: (params) => {
    const text = params.get("row") ?? "";
    return /^\d{1,5}$/.test(text) ? Math.min(Number(text), MAX_ROWS - 1) : 0;
  },
  write: (row) => (row === 0 ? [] : [["row", String(row)]]),
};
