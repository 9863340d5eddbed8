/** The parts of a query other than its filter. */

import { LookupChips } from "../collections/documents/LookupChips";
import { MAX_LIMIT, type QueryInputs } from "./playgroundQuery";

interface QueryFieldsProps {
  readonly collections: readonly string[];
  readonly collection: string;
  /** Those of the collection, as far as its schema tells. */
  readonly fields: readonly string[];
  readonly typed: Pick<QueryInputs, "sort" | "limit" | "by" | "measures" | "lookups">;
  readonly onCollection: (name: string) => void;
  readonly onType: (members: Partial<QueryInputs>) => void;
}

const TEXTS = [
  ["sort", "Sort", "sort: -rank, title"],
  ["by", "Group by", "group by: owner"],
  ["measures", "Measures", "count, sum(n)"],
] as const;

export function QueryFields(props: QueryFieldsProps) {
  const { collections, collection, fields, typed, onCollection, onType } = props;
  return (
    <div className="row-fields">
      <select
        className="select"
        aria-label="Collection"
        value={collection}
        onChange={(event) => onCollection(event.target.value)}
      >
        {collections.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <input
        className="input number"
        aria-label="Limit"
        type="number"
        min={1}
        max={MAX_LIMIT}
        value={typed.limit}
        onChange={(event) => onType({ limit: event.target.value })}
      />
      {TEXTS.map(([member, label, placeholder]) => (
        <input
          key={member}
          className={member === "sort" ? "input mono whole" : "input mono"}
          aria-label={label}
          placeholder={placeholder}
          value={typed[member]}
          onChange={(event) => onType({ [member]: event.target.value })}
        />
      ))}
      <div className="chips whole">
        <LookupChips
          chosen={typed.lookups}
          collections={collections}
          fields={fields}
          onChange={(lookups) => onType({ lookups })}
        />
      </div>
    </div>
  );
}
