/** The plan of a query, first in words. */

import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import type { Index } from "../../api/types";
import { Code } from "../../ui/Code";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Icon } from "../../ui/Icon";
import { counted, numberText } from "../../ui/units";
import { adviceText } from "../collections/advice";

interface Explanation {
  readonly plan: {
    readonly reads: "index" | "documents";
    readonly index: string | null;
    readonly ranges: number;
    readonly technique: Index["technique_in_use"] | null;
    readonly order: string;
    readonly estimated_entries: number | null;
    readonly reads_everything: boolean;
  };
  readonly advice: Index["advice"];
  readonly sql: string;
  readonly postgres: unknown;
  readonly grid: {
    readonly indexable: boolean;
    readonly access: readonly { readonly path: string; readonly kind: string }[];
  };
}

interface ExplainedProps {
  readonly hasFilter: boolean;
  readonly ask: () => Promise<Explanation>;
}

export function Explained({ hasFilter, ask }: ExplainedProps) {
  const id = useId();
  const { data, error } = useQuery({ queryKey: ["explain", id], queryFn: ask });
  if (error !== null) {
    return (
      <div className="pad">
        <ErrorNotice error={error} />
      </div>
    );
  }
  if (data === undefined) return <Skeleton />;
  const { plan, advice, grid } = data;
  return (
    <div className="explained">
      <Verdict
        isGood={!plan.reads_everything}
        title={
          plan.reads === "index"
            ? `Reads the index ${plan.index}`
            : plan.reads_everything
              ? "Reads every document"
              : "Reads by _id"
        }
      >
        {plan.reads_everything
          ? hasFilter
            ? "An index on the fields of the filter would reduce what it reads."
            : "The query has no filter. Add one to read fewer documents."
          : `${counted(plan.ranges, "range")}, order ${plan.order}${
              plan.estimated_entries === null
                ? ""
                : `, about ${numberText(plan.estimated_entries)} ${plan.estimated_entries === 1 ? "entry" : "entries"}`
            }.`}
      </Verdict>
      {advice !== null && plan.technique !== null && (
        <Verdict
          isGood={advice.technique === plan.technique}
          title={`The index is ${plan.technique}, chosen automatically`}
        >
          {adviceText(advice, plan.technique)}
        </Verdict>
      )}
      <Verdict
        isGood={grid.indexable}
        title={grid.indexable ? "Indexed as a live query" : "Evaluated for every write"}
      >
        {grid.indexable
          ? `A write finds this query by ${grid.access.map(({ path, kind }) => `${path} (${kind})`).join(", ")}.`
          : "The filter has no equality, range or list that could be indexed, so the query is evaluated for every write to the collection. A few such queries are fine."}
      </Verdict>
      {data.sql !== "" && <Code text={data.sql} label="SQL" />}
      {data.postgres !== null && (
        <Code text={JSON.stringify(data.postgres, null, 2)} label="PostgreSQL's plan" />
      )}
    </div>
  );
}

interface VerdictProps {
  readonly isGood: boolean;
  readonly title: string;
  readonly children: string;
}

function Verdict({ isGood, title, children }: VerdictProps) {
  return (
    <div className={isGood ? "notice" : "notice warn"}>
      <Icon name={isGood ? "check" : "alert"} />
      <div className="grow">
        <strong>{title}</strong>
        <p>{children}</p>
      </div>
    </div>
  );
}
