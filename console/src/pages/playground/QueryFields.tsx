/** The parts of a query other than its filter. */

import type { ReactNode } from "react";
import { Field, Select, sameText } from "../../ui/Field";
import { LookupChips } from "../collections/documents/LookupChips";
import { MAX_LIMIT, type QueryInputs } from "./playgroundQuery";

interface QueryFieldsProps {
  readonly collections: readonly string[];
  readonly collection: string;
  /** The fields in the collection's schema. */
  readonly fields: readonly string[];
  readonly typed: Pick<QueryInputs, "sort" | "limit" | "by" | "measures" | "lookups">;
  readonly onCollection: (name: string) => void;
  readonly onType: (members: Partial<QueryInputs>) => void;
  /** Shown beside the lookups. */
  readonly children: ReactNode;
}

const TEXTS = [
  ["sort", "Sort", "-rank, title"],
  ["by", "Group by", "owner"],
  ["measures", "Measures", "count, sum(n)"],
] as const;

export function QueryFields(props: QueryFieldsProps) {
  const { collections, collection, fields, typed, onCollection, onType, children } = props;
  return (
    <div className="row-fields">
      <Field label="Collection">
        <Select
          label="Collection"
          options={sameText(collections)}
          value={collection}
          isDisabled={collections.length === 0}
          onChange={onCollection}
        />
      </Field>
      <Field label="Limit">
        <input
          className="input number"
          aria-label="Limit"
          type="number"
          min={1}
          max={MAX_LIMIT}
          value={typed.limit}
          onChange={(event) => onType({ limit: event.target.value })}
        />
      </Field>
      {TEXTS.map(([member, label, placeholder]) => (
        <Field key={member} label={label}>
          <input
            className="input mono"
            aria-label={label}
            placeholder={placeholder}
            value={typed[member]}
            onChange={(event) => onType({ [member]: event.target.value })}
          />
        </Field>
      ))}
      <div className="chips">
        <LookupChips
          chosen={typed.lookups}
          collections={collections}
          fields={fields}
          onChange={(lookups) => onType({ lookups })}
        />
        {children}
      </div>
    </div>
  );
}
