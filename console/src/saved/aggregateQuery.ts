/** Queries over aggregates, as they are saved and as the SDK takes them. */

import type { RowQuery } from "rillbase";

type Stored = Readonly<Record<string, unknown>>;

export function storedRows({ groupBy, ...rest }: RowQuery): Stored {
  return { ...rest, ...(groupBy === undefined ? {} : { group_by: groupBy }) };
}

export function rowQueryOf({ group_by: groupBy, ...rest }: Stored): RowQuery {
  return {
    ...(rest as Omit<RowQuery, "groupBy">),
    ...(groupBy === undefined ? {} : { groupBy: groupBy as readonly string[] }),
  };
}
