/** The types that users of the library use. */

/** A stored document. */
export interface Document {
  readonly _id?: unknown;
  readonly [field: string]: unknown;
}

/** Conditions on one field, in MongoDB's language. */
export interface Conditions<V> {
  readonly $eq?: V | null;
  readonly $ne?: V | null;
  readonly $gt?: V;
  readonly $gte?: V;
  readonly $lt?: V;
  readonly $lte?: V;
  readonly $in?: readonly (V | null)[];
  readonly $nin?: readonly (V | null)[];
  readonly $exists?: boolean;
  readonly $not?: Conditions<V>;
  readonly $size?: number;
  readonly [operator: `$${string}`]: unknown;
}

type FieldFilter<V> =
  | V
  | null
  | RegExp
  | Conditions<V>
  | (V extends readonly (infer E)[] ? E | Conditions<E> : never);

/** A filter: fields of the document, dotted paths, and `$and`, `$or`, `$nor`, `$expr`, …. */
export type Filter<T> = { readonly [K in keyof T]?: FieldFilter<T[K]> } & {
  readonly $and?: readonly Filter<T>[];
  readonly $or?: readonly Filter<T>[];
  readonly $nor?: readonly Filter<T>[];
  readonly [path: string]: unknown;
};

/** An update: MongoDB's operators, each with the fields that it changes. */
export interface Update<T> {
  readonly $set?: { readonly [K in keyof T]?: T[K] } & { readonly [path: string]: unknown };
  readonly $unset?: { readonly [path: string]: unknown };
  readonly $inc?: { readonly [path: string]: unknown };
  readonly $push?: { readonly [path: string]: unknown };
  readonly [operator: `$${string}`]: { readonly [path: string]: unknown } | undefined;
}

/** Which fields a query returns: names with 1, or with 0 those to leave out. */
export type Projection<T> = { readonly [K in keyof T]?: 0 | 1 | boolean } & {
  readonly [path: string]: unknown;
};

/** A document with the server's metadata. */
export interface Envelope<T> {
  readonly id: unknown;
  readonly version: number;
  readonly createdAt: Date | null;
  readonly updatedAt: Date | null;
  readonly document: T;
}
