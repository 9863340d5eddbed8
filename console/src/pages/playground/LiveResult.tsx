/** The answer as it is now. */

import { useMemo, useState } from "react";
import type { Query } from "rillbase";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { columnsOf } from "../collections/documents/columns";
import { DocumentGrid } from "../collections/documents/DocumentGrid";
import { GridFoot } from "../collections/documents/GridFoot";
import { useWatched } from "../collections/documents/useLiveDocuments";

const NOBODY: ReadonlySet<string> = new Set();

export function LiveResult({ query }: { readonly query: Query<Record<string, unknown>> }) {
  const live = useWatched(query);
  const [opened, setOpened] = useState<string | null>(null);
  const isEmpty = live.items.length === 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: columns stay while rows come and go.
  const columns = useMemo(() => columnsOf(live.items, null), [query.key, isEmpty]);
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
        <p className="soft pad">{live.hasAnswer ? "Nothing matches now." : ""}</p>
      ) : (
        <DocumentGrid
          live={live}
          columns={columns}
          sort={[]}
          selected={NOBODY}
          opened={opened}
          mayWrite={false}
          onSort={() => {}}
          onSelect={() => {}}
          onOpen={(row) => setOpened(String(row.id))}
          onSave={() => {}}
        />
      )}
      <GridFoot live={live} count={null} />
    </>
  );
}
