/** What the playground shows, as parameters of its address. Pure functions. */

import { joinWords, readOr, splitWords } from "../../shell/addressWords";
import type { AddressForm, Pair } from "../../shell/useAddressState";
import type { ChartChoice, ChartType } from "../../ui/charts/chartData";
import { lookupsFrom, lookupText } from "../collections/documents/lookups";
import { NOTHING_TYPED } from "./example";
import { MAX_LIMIT, type QueryInputs, read } from "./playgroundQuery";

const TEXTS = ["filter", "sort", "limit", "by", "measures"] as const;

/** The query that was run last; null if it is the one that the page opens with. */
export const QUERY_ADDRESS: AddressForm<QueryInputs | null> = {
  names: ["collection", ...TEXTS, "lookup"],
  read: (params) => {
    const collection = params.get("collection") ?? "";
    if (collection === "") return null;
    const texts = TEXTS.map((name) => [name, readableText(name, params.get(name))]);
    const lookups = lookupsFrom(params.getAll("lookup"));
    return { ...NOTHING_TYPED, ...Object.fromEntries(texts), collection, lookups };
  },
  write: (inputs) => {
    if (inputs === null) return [];
    const changed = TEXTS.filter((name) => inputs[name].trim() !== NOTHING_TYPED[name]);
    return [
      ["collection", inputs.collection],
      ...changed.map((name): Pair => [name, inputs[name]]),
      ...inputs.lookups.map((lookup): Pair => ["lookup", lookupText(lookup)]),
    ];
  },
};

function readableText(name: (typeof TEXTS)[number], text: string | null): string {
  const initial = NOTHING_TYPED[name];
  if (text === null) return initial;
  if (name === "limit") return isLimit(text) ? text : initial;
  return readOr(() => read({ ...NOTHING_TYPED, [name]: text })) === undefined ? initial : text;
}

function isLimit(text: string): boolean {
  return /^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_LIMIT;
}

const VIEWS = ["result", "chart", "events", "explain"] as const;
export type View = (typeof VIEWS)[number];

/** How the answer is shown; null for what the page opens with. */
export interface Presentation {
  readonly view: View | null;
  readonly chart: ChartChoice | null;
}

export const PRESENTATION_ADDRESS: AddressForm<Presentation> = {
  names: ["view", "chart"],
  read: (params) => ({
    view: VIEWS.find((view) => view === params.get("view")) ?? null,
    chart: chartFrom(params.get("chart") ?? ""),
  }),
  write: ({ view, chart }) => [
    ...(view === null ? [] : [["view", view] as const]),
    ...(chart === null ? [] : [["chart", chartText(chart)] as const]),
  ],
};

const CHART_TYPES: readonly ChartType[] = ["line", "bar", "area", "number", "table"];

/** The type and the fields; an empty word is a field that was not chosen. */
function chartText({ type, x, y, series }: ChartChoice): string {
  return joinWords([type, x ?? "", y ?? "", series ?? ""]);
}

function chartFrom(text: string): ChartChoice | null {
  const [name, x = "", y = "", series = ""] = splitWords(text, 4)?.words ?? [];
  const type = CHART_TYPES.find((candidate) => candidate === name);
  if (type === undefined) return null;
  return { type, x: x || null, y: y || null, series: series || null };
}
