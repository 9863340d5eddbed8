/** The collections in the sidebar: grouped, filtered, and folded away if there are many. */

import { type ReactNode, useState } from "react";
import { useCollections, useTenant } from "../api/tenant";
import type { Collection } from "../api/types";
import { NewCollection } from "../pages/collections/NewCollection";
import { Icon } from "../ui/Icon";
import { groupsOf } from "./collectionGroups";
import { NavigationItem } from "./NavigationItem";
import { useStored } from "./stored";

/** With more collections than this the list scrolls by itself, and can be filtered. */
const FILTERED_FROM = 8;

export function CollectionList() {
  const { data = [], isSuccess } = useCollections();
  const { slug } = useTenant();
  const [isOpen, setOpen] = useStored(`rillbase:collections-open:${slug}`, true);
  const [text, setText] = useState("");
  const isLong = data.length > FILTERED_FROM;
  const searched = text.trim().toLowerCase();
  const shown = data.filter(({ name }) => name.includes(searched));
  return (
    <section className="group" aria-label="Collections">
      <div className="caption">
        <FoldButton isOpen={isOpen} onToggle={() => setOpen(!isOpen)}>
          Collections
        </FoldButton>
        <AddButton />
      </div>
      {isOpen && isLong && (
        <input
          className="input small"
          type="search"
          aria-label="Filter collections"
          placeholder={`Filter ${data.length} collections`}
          value={text}
          onClick={(event) => event.stopPropagation()}
          onChange={({ target }) => setText(target.value)}
        />
      )}
      {isOpen && (
        <div className={isLong ? "collection-list long" : "collection-list"}>
          {groupsOf(shown).map(({ prefix, collections }) =>
            prefix === null ? (
              collections.map((one) => <CollectionLink key={one.name} collection={one} />)
            ) : (
              <PrefixGroup
                key={prefix}
                prefix={prefix}
                collections={collections}
                isForced={searched !== ""}
              />
            ),
          )}
          {shown.length === 0 && isLong && <p className="none">No collection matches.</p>}
          {isSuccess && data.length === 0 && <p className="none">No collections yet</p>}
        </div>
      )}
    </section>
  );
}

interface GroupProps {
  readonly prefix: string;
  readonly collections: readonly Collection[];
  /** A search shows what it finds in folded groups too. */
  readonly isForced: boolean;
}

function PrefixGroup({ prefix, collections, isForced }: GroupProps) {
  const { slug } = useTenant();
  const [isStoredOpen, setOpen] = useStored(`rillbase:collections-open:${slug}:${prefix}`, true);
  const isOpen = isStoredOpen || isForced;
  return (
    <div className="prefix-group">
      <div className="caption">
        <FoldButton isOpen={isOpen} onToggle={() => setOpen(!isOpen)}>
          {prefix}
        </FoldButton>
        <span className="number">{collections.length}</span>
      </div>
      {isOpen &&
        collections.map((one) => (
          <CollectionLink key={one.name} collection={one} prefix={prefix} />
        ))}
    </div>
  );
}

interface LinkProps {
  readonly collection: Collection;
  readonly prefix?: string;
}

function CollectionLink({ collection: { name, read_only: isSourced }, prefix = "" }: LinkProps) {
  const rest = name.slice(prefix.length);
  return (
    <NavigationItem
      to={`/collections/${name}`}
      icon={isSourced ? "link" : "collection"}
      title={isSourced ? `${name} follows a PostgreSQL table` : name}
    >
      {rest !== "" && prefix !== "" && <span className="prefix">{prefix}</span>}
      {rest === "" ? name : rest}
    </NavigationItem>
  );
}

interface FoldProps {
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly children: ReactNode;
}

function FoldButton({ isOpen, onToggle, children }: FoldProps) {
  return (
    <button
      type="button"
      className="fold-button"
      aria-expanded={isOpen}
      onClick={(event) => {
        event.stopPropagation();
        onToggle();
      }}
    >
      {children}
      <span className={isOpen ? "" : "folded"}>
        <Icon name="down" size={11} />
      </span>
    </button>
  );
}

function AddButton() {
  const { may } = useTenant();
  const [isAdding, setAdding] = useState(false);
  return (
    may("developer") && (
      <>
        <button
          type="button"
          aria-label="New collection"
          title="New collection"
          onClick={() => setAdding(true)}
        >
          <Icon name="plus" size={14} />
        </button>
        {isAdding && <NewCollection onClose={() => setAdding(false)} />}
      </>
    )
  );
}
