/** One collection: its documents and its settings. */

import { useHeld } from "../../api/held";
import type { Collection } from "../../api/types";
import { TabbedPage } from "../../shell/TabbedPage";
import { DocumentsTab } from "./documents/DocumentsTab";
import { IndexesTab } from "./IndexesTab";
import { LifeTab } from "./LifeTab";
import { RulesTab } from "./RulesTab";
import { SchemaTab } from "./SchemaTab";
import { SourceTab } from "./SourceTab";

const TABS = [
  ["documents", "Documents"],
  ["schema", "Schema"],
  ["rules", "Access rules"],
  ["indexes", "Indexes"],
  ["source", "Source"],
  ["life", "Lifetime"],
] as const;

/** A collection as it was read, and how to change it if it still is what was read. */
export interface Held {
  readonly collection: Collection;
  readonly change: (members: Partial<Record<keyof Collection, unknown>>) => Promise<void>;
}

interface PageProps {
  readonly name: string;
  readonly tab: string;
}

export default function CollectionPage({ name, tab }: PageProps) {
  const { held, error } = useCollection(name);
  return (
    <TabbedPage
      list="collections"
      name={name}
      icon="collection"
      label="Sections of the collection"
      tabs={TABS}
      tab={tab}
      held={held}
      error={error}
    >
      {(shown) => <Tab held={shown} tab={tab} />}
    </TabbedPage>
  );
}

function Tab({ held, tab }: { readonly held: Held; readonly tab: string }) {
  if (tab === "documents") {
    return (
      <div className="page-body fill">
        <DocumentsTab collection={held.collection} />
      </div>
    );
  }
  return (
    <div className="page-body">
      {tab === "schema" && <SchemaTab held={held} />}
      {tab === "rules" && <RulesTab held={held} />}
      {tab === "indexes" && <IndexesTab held={held} />}
      {tab === "source" && <SourceTab held={held} />}
      {tab === "life" && <LifeTab held={held} />}
    </div>
  );
}

const BUILDING_MS = 1_000;

function useCollection(name: string): { held: Held | null; error: unknown } {
  const { held, error } = useHeld<Collection>("collections", name, (collection) =>
    // The progress of an index that is being built is worth watching.
    collection.indexes.some((index) => index.state === "building") ? BUILDING_MS : false,
  );
  return { held: held && { collection: held.body, change: held.change }, error };
}
