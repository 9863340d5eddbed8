/** One collection: its documents and its settings. */

import { useResource } from "../../api/resource";
import type { Collection } from "../../api/types";
import { TabbedPage, tabOf } from "../../shell/TabbedPage";
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

type TabId = (typeof TABS)[number][0];

/** A collection as it was read, and how to change it unless it has changed since. */
export interface CollectionResource {
  readonly collection: Collection;
  /** The collection as it was received. */
  readonly text: string;
  readonly change: (members: Partial<Record<keyof Collection, unknown>>) => Promise<void>;
}

interface PageProps {
  readonly name: string;
  /** The tab in the address. */
  readonly tab: string | undefined;
}

export default function CollectionPage({ name, tab: named }: PageProps) {
  const tab = tabOf(TABS, named);
  const { resource, error } = useCollection(name);
  return (
    <TabbedPage
      list="collections"
      name={name}
      icon="collection"
      label="Sections of the collection"
      tabs={TABS}
      tab={tab}
      resource={resource}
      error={error}
    >
      {(shown) => <Tab resource={shown} tab={tab} />}
    </TabbedPage>
  );
}

function Tab({ resource, tab }: { readonly resource: CollectionResource; readonly tab: TabId }) {
  if (tab === "documents") {
    return (
      <div className="page-body fill">
        <DocumentsTab collection={resource.collection} />
      </div>
    );
  }
  return (
    <div className="page-body">
      {tab === "schema" && <SchemaTab resource={resource} />}
      {tab === "rules" && <RulesTab resource={resource} />}
      {tab === "indexes" && <IndexesTab resource={resource} />}
      {tab === "source" && <SourceTab resource={resource} />}
      {tab === "life" && <LifeTab resource={resource} />}
    </div>
  );
}

const BUILDING_MS = 1_000;

function useCollection(name: string): { resource: CollectionResource | null; error: unknown } {
  const { resource, error } = useResource<Collection>("collections", name, (collection) =>
    // The page polls while an index is being built, or the collection moves.
    collection.move?.state === "copying" ||
    collection.indexes.some((index) => index.state === "building")
      ? BUILDING_MS
      : false,
  );
  return { resource: resource && { ...resource, collection: resource.body }, error };
}
