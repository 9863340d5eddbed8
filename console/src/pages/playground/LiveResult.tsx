/** The live result. */

import { useMemo, useState } from "react";
import type { Group, Lookup, Query } from "rillbase";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { columnsOf } from "../collections/documents/columns";
import { DocumentGrid } from "../collections/documents/DocumentGrid";
import { GridFoot } from "../collections/documents/GridFoot";
import { useWatched } from "../collections/documents/useLiveDocuments";
import { GroupResult } from "./GroupResult";

const NOBODY: ReadonlySet<string> = new Set();

interface LiveResultProps {
  readonly query: Query<Record<string, unknown>>;
  readonly group: Group | undefined;
  readonly lookup: readonly Lookup[] | undefined;
}

export function LiveResult({ query, group, lookup }: LiveResultProps) {
  const live = useWatched(query);
  const [opened, setOpened] = useState<string | null>(null);
  const isEmpty = live.items.length === 0;
  const nested = useMemo(() => lookup?.map(({ as }) => as) ?? [], [lookup]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: columns stay while rows come and go.
  const columns = useMemo(() => columnsOf(live.items, null, nested), [query.key, isEmpty]);
  if (live.error !== null) {
    return (
      <div className="pad">
        <ErrorNotice error={live.error} onRetry={live.again} />
      </div>
    );
  }
  return (
    <>
      {isEmpty ? (
        <p className="soft pad">{live.hasAnswer ? "No documents match." : ""}</p>
      ) : group !== undefined ? (
        <GroupResult live={live} group={group} />
      ) : (
        <DocumentGrid
          live={live}
          columns={columns}
          nested={nested}
          sort={[]}
          selected={NOBODY}
          opened={opened}
          mayWrite={false}
          onSort={() => {}}
          onSelect={() => {}}
          onOpen={(row) => setOpened(String(row.id))}
          onSave={async () => null}
        />
      )}
      <GridFoot live={live} count={null} hasKeys={group === undefined} noun={group && "row"} />
    </>
  );
}
