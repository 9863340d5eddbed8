/** From rows to what a chart draws: positions, series and a scale. Pure functions. */

export type ChartType = "line" | "bar" | "area" | "number" | "table";
export type Row = Readonly<Record<string, unknown>>;

export interface ChartChoice {
  readonly type: ChartType;
  /** Null: the number of the row. */
  readonly x: string | null;
  /** Null: how many rows there are. */
  readonly y: string | null;
  readonly series: string | null;
}

export interface Field {
  readonly name: string;
  readonly kind: "number" | "time" | "text";
}

export interface Series {
  readonly name: string;
  /** One for each position. */
  readonly values: readonly (number | null)[];
}

export interface ChartData {
  readonly xs: readonly {
    readonly key: string;
    readonly label: string;
    /** From 0 to 1. */
    readonly at: number;
  }[];
  readonly series: readonly Series[];
  readonly ticks: readonly number[];
  /** Series and positions that do not fit into the chart. */
  readonly omitted: number;
}

export const MAX_SERIES = 8;
export const MAX_BARS = 60;
const MAX_POINTS = 1_000;
const SAMPLED_ROWS = 50;
const ISO_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;

/** Returns the value of a field; `a.b` is the field `b` of the object `a`. */
export function fieldValue(row: Row, name: string): unknown {
  if (name in row) return row[name];
  const [head = "", ...rest] = name.split(".");
  const inner = row[head];
  if (rest.length === 0 || typeof inner !== "object" || inner === null) return undefined;
  return fieldValue(inner as Row, rest.join("."));
}

/** Returns a number in any form, or null. */
export function numberOf(value: unknown): number | null {
  if (value === null || value === undefined || typeof value === "boolean") return null;
  if (typeof value === "string" || value instanceof Date || Array.isArray(value)) return null;
  const number = Number(String(value));
  return Number.isFinite(number) ? number : null;
}

/** Returns a moment in milliseconds, or null. */
export function timeOf(value: unknown): number | null {
  const isTime = value instanceof Date || (typeof value === "string" && ISO_TIME.test(value));
  const time = isTime ? new Date(value as Date | string).getTime() : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

/** Returns the fields of rows, as far as the first rows show them. */
export function fieldsOf(rows: readonly Row[]): Field[] {
  const kinds = new Map<string, Field["kind"]>();
  for (const row of rows.slice(0, SAMPLED_ROWS)) {
    for (const [name, value] of flat(row)) {
      if (value === null || value === undefined) continue;
      const kind = kindOf(value);
      kinds.set(name, (kinds.get(name) ?? kind) === kind ? kind : "text");
    }
  }
  return [...kinds].map(([name, kind]) => ({ name, kind }));
}

function kindOf(value: unknown): Field["kind"] {
  if (numberOf(value) !== null) return "number";
  return timeOf(value) === null ? "text" : "time";
}

/** Returns the members of a row, and those of objects in it. */
function flat(row: Row): [string, unknown][] {
  return Object.entries(row).flatMap(([name, value]): [string, unknown][] => {
    const isPlain = Object.prototype.toString.call(value) === "[object Object]";
    const isObject = isPlain && Object.getPrototypeOf(value) === Object.prototype;
    if (!isObject) return Array.isArray(value) ? [] : [[name, value]];
    return Object.entries(value as Row)
      .filter(
        ([, inner]) => typeof inner !== "object" || inner === null || numberOf(inner) !== null,
      )
      .map(([inner, found]) => [`${name}.${inner}`, found]);
  });
}

/** Returns a chart that fits the rows: over time if there is one, else by the first text. */
export function suggestedChart(fields: readonly Field[]): ChartChoice {
  const own = fields.filter(({ name }) => name !== "_id");
  const time = own.find(({ kind }) => kind === "time");
  const text = own.find(({ kind }) => kind === "text");
  const y = own.find(({ kind, name }) => kind === "number" && name !== text?.name)?.name ?? null;
  if (time !== undefined) {
    return { type: "line", x: time.name, y, series: text?.name ?? null };
  }
  if (text !== undefined) return { type: "bar", x: text.name, y, series: null };
  return { type: y === null ? "table" : "number", x: null, y, series: null };
}

/** Returns the sum of a field over all rows, or their number. */
export function totalOf(rows: readonly Row[], y: string | null): number {
  if (y === null) return rows.length;
  return rows.reduce((sum, row) => sum + (numberOf(fieldValue(row, y)) ?? 0), 0);
}

interface Position {
  readonly key: string;
  readonly label: string;
  /** On a scale of times or numbers; null: positions are evenly spaced, in the order of rows. */
  readonly amount: number | null;
}

/** Returns what to draw. Rows with the same position and series are added up. */
export function chartData(
  rows: readonly Row[],
  choice: ChartChoice,
  textOf: (value: unknown) => string,
): ChartData {
  const isBar = choice.type === "bar";
  const all = positionsOf(rows, choice.x, textOf);
  // Of a series over time, the latest is what matters.
  const isScale = all[0]?.amount !== null;
  const most = isBar ? MAX_BARS : MAX_POINTS;
  const positions = isScale ? all.slice(-most) : all.slice(0, most);
  const sums = sumsOf(rows, choice, textOf);
  const names = [...sums.keys()];
  const series = names.slice(0, MAX_SERIES).map((name) => ({
    name,
    values: positions.map(({ key }) => sums.get(name)?.get(key) ?? null),
  }));
  const values = series.flatMap((one) => one.values.filter((value) => value !== null));
  return {
    xs: spaced(positions, isBar),
    series,
    ticks: ticksOf(Math.min(0, ...values), Math.max(0, ...values)),
    omitted: names.length - series.length + all.length - positions.length,
  };
}

function positionsOf(
  rows: readonly Row[],
  x: string | null,
  textOf: (value: unknown) => string,
): Position[] {
  const values = rows.map((row, index) => (x === null ? index + 1 : fieldValue(row, x)));
  const given = values.filter((value) => value !== null && value !== undefined);
  const read = [timeOf, numberOf].find((of) => given.every((value) => of(value) !== null));
  const positions = new Map<string, Position>();
  values.forEach((value, index) => {
    const key = keyAt(rows[index] ?? {}, index, x, textOf);
    const amount = read === undefined ? null : (read(value) ?? 0);
    if (!positions.has(key)) positions.set(key, { key, label: textOf(value), amount });
  });
  const found = [...positions.values()];
  return read === undefined ? found : found.sort((a, b) => (a.amount ?? 0) - (b.amount ?? 0));
}

function keyAt(
  row: Row,
  index: number,
  x: string | null,
  textOf: (value: unknown) => string,
): string {
  if (x === null) return String(index + 1);
  const value = fieldValue(row, x);
  return String(timeOf(value) ?? textOf(value));
}

function sumsOf(
  rows: readonly Row[],
  { x, y, series }: ChartChoice,
  textOf: (value: unknown) => string,
): Map<string, Map<string, number>> {
  const sums = new Map<string, Map<string, number>>();
  rows.forEach((row, index) => {
    const value = y === null ? 1 : numberOf(fieldValue(row, y));
    if (value === null) return;
    const name = series === null ? (y ?? "rows") : textOf(fieldValue(row, series)) || "–";
    const key = keyAt(row, index, x, textOf);
    const own = sums.get(name) ?? new Map<string, number>();
    own.set(key, (own.get(key) ?? 0) + value);
    sums.set(name, own);
  });
  return sums;
}

function spaced(positions: readonly Position[], isBar: boolean): ChartData["xs"] {
  const first = positions[0]?.amount ?? 0;
  const span = (positions[positions.length - 1]?.amount ?? 0) - first;
  return positions.map(({ key, label, amount }, index) => {
    if (isBar) return { key, label, at: (index + 0.5) / positions.length };
    if (amount !== null && span > 0) return { key, label, at: (amount - first) / span };
    return { key, label, at: positions.length === 1 ? 0.5 : index / (positions.length - 1) };
  });
}

const TICKS = 4;

/** Returns round numbers from the lowest to the highest value, and beyond as far as necessary. */
export function ticksOf(min: number, max: number): number[] {
  const span = max - min || 1;
  const rough = span / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const first = Math.floor(min / step);
  const last = Math.max(first + 1, Math.ceil(max / step));
  return Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  );
}
