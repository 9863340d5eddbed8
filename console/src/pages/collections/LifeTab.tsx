/** The expiry of documents, where they are, and dropping the collection. */

import { useState } from "react";
import { useTenant } from "../../api/tenant";
import { ConfirmDrop } from "../../shell/DropButton";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field } from "../../ui/Field";
import { useToasts } from "../../ui/toasts";
import type { CollectionResource } from "./CollectionPage";
import { StorageCard } from "./StorageCard";

const DAY_S = 86_400;

export function LifeTab({ resource }: { readonly resource: CollectionResource }) {
  const { may } = useTenant();
  return (
    <div className="column narrow">
      <Ttl resource={resource} />
      <StorageCard resource={resource} />
      {may("developer") && <Drop collection={resource.collection} />}
    </div>
  );
}

/** The form of the time to live, and how it is saved. */
function useTtl({ collection, change }: CollectionResource) {
  const { showMessage } = useToasts();
  const [field, setField] = useState(collection.ttl?.field ?? "");
  const [days, setDays] = useState(String((collection.ttl?.after_s ?? 30 * DAY_S) / DAY_S));
  const [error, setError] = useState<unknown>(null);
  async function save(ttl: { field: string; after_s: number } | null) {
    setError(null);
    try {
      await change({ ttl });
      showMessage(ttl === null ? "Time to live removed." : "Time to live saved.");
      if (ttl === null) setField("");
    } catch (thrown) {
      setError(thrown);
    }
  }
  return { field, setField, days, setDays, error, save };
}

function Ttl({ resource }: { readonly resource: CollectionResource }) {
  const { may } = useTenant();
  const { field, setField, days, setDays, error, save } = useTtl(resource);
  return (
    <section className="card life" aria-label="Time to live">
      <h2>Time to live</h2>
      <p className="soft">
        A document is deleted this many days after the date in the field. Documents without that
        date are kept. Subscribers receive the deletion.
      </p>
      <div className="life-fields">
        <Field label="Date field">
          <input
            className="input mono"
            placeholder="done_at"
            value={field}
            onChange={(event) => setField(event.target.value)}
          />
        </Field>
        <Field label="Days to keep">
          <input
            className="input number"
            type="number"
            min={0}
            step="any"
            value={days}
            onChange={(event) => setDays(event.target.value)}
          />
        </Field>
      </div>
      {error !== null && <ErrorNotice error={error} />}
      {may("developer") && (
        <div>
          <button
            type="button"
            className="button main"
            disabled={field === "" || days === ""}
            onClick={() => save({ field, after_s: Math.round(Number(days) * DAY_S) })}
          >
            Save
          </button>{" "}
          {resource.collection.ttl !== null && (
            <button type="button" className="button" onClick={() => save(null)}>
              Keep documents
            </button>
          )}
        </div>
      )}
    </section>
  );
}

function Drop({ collection }: { readonly collection: CollectionResource["collection"] }) {
  const { name, read_only: isFollowing } = collection;
  const [isConfirming, setConfirming] = useState(false);
  return (
    <section className="card life" aria-label="Drop the collection">
      <h2>Drop the collection</h2>
      <p className="soft">All documents, indexes and rules are deleted, and subscriptions end.</p>
      <div>
        <button type="button" className="button danger" onClick={() => setConfirming(true)}>
          Drop {name}
        </button>
      </div>
      {isConfirming && (
        <ConfirmDrop
          list="collections"
          name={name}
          next="start"
          onClose={() => setConfirming(false)}
        >
          This cannot be undone.
          {isFollowing &&
            " The source stays listed until its slot and publication have been dropped."}
        </ConfirmDrop>
      )}
    </section>
  );
}
