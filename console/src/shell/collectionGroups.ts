/** Groups collections whose names begin alike, such as `shop-orders` and `shop-items`. */

interface Named {
  readonly name: string;
}

/** Collections with a prefix in common, or one collection without a prefix. */
export interface CollectionGroup<T extends Named> {
  readonly prefix: string | null;
  readonly collections: readonly T[];
}

const MIN_MEMBERS = 2;

/** Returns the groups in the order of their first collections. */
export function groupsOf<T extends Named>(collections: readonly T[]): CollectionGroup<T>[] {
  const groups = new Map<string, T[]>();
  for (const one of collections) {
    const prefix = prefixOf(one.name);
    groups.set(prefix, [...(groups.get(prefix) ?? []), one]);
  }
  return [...groups].flatMap(([prefix, members]): CollectionGroup<T>[] =>
    members.length < MIN_MEMBERS
      ? members.map((member) => ({ prefix: null, collections: [member] }))
      : [{ prefix, collections: members }],
  );
}

/** Returns the part of a name before the first separator, or the whole name. */
function prefixOf(name: string): string {
  return /^[^-_]+/.exec(name)?.[0] ?? name;
}
