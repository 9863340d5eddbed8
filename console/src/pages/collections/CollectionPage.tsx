/** One collection: its documents, and what holds for all of them. */

import { Link } from "wouter";
import { useHeld } from "../../api/held";
import { useTenant } from "../../api/tenant";
import type { Collection } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Icon } from "../../ui/Icon";
import { DocumentsTab } from "./documents/DocumentsTab";
import { IndexesTab } from "./IndexesTab";
import { LifeTab } from "./LifeTab";
import { RulesTab } from "./RulesTab";
import { SchemaTab } from "./SchemaTab";

const TABS = [
  ["documents", "Documents"],
  ["schema", "Schema"],
  ["rules", "Access rules"],
  ["indexes", "Indexes"],
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
  const { slug } = useTenant();
  const { held, error } = useCollection(name);
  const path = `/t/${slug}/collections/${name}`;
  return (
    <>
      <PageHead
        name={name}
        title={
          <>
            <Icon name="collection" />
            <h1 className="mono cut">{name}</h1>
          </>
        }
      >
        <nav className="tabs" aria-label="Parts of the collection">
          {TABS.map(([id, title]) => (
            <Link
              key={id}
              href={id === "documents" ? path : `${path}/${id}`}
              aria-current={tab === id ? "page" : undefined}
            >
              {title}
            </Link>
          ))}
        </nav>
      </PageHead>
      {error !== null && (
        <div className="column">
          <ErrorNotice error={error} />
        </div>
      )}
      {held === null && error === null && <Skeleton rows={10} />}
      {held !== null && <Tab held={held} tab={tab} />}
    </>
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
