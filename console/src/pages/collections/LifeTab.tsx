/** When documents expire, and the end of the collection itself. */

import { useState } from "react";
import { useTenant } from "../../api/tenant";
import { ConfirmDrop } from "../../shell/DropButton";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field } from "../../ui/Field";
import { useToasts } from "../../ui/toasts";
import type { Held } from "./CollectionPage";

const DAY_S = 86_400;

export function LifeTab({ held }: { readonly held: Held }) {
  const { may } = useTenant();
  return (
    <div className="column">
      <Ttl held={held} />
      {may("developer") && <Drop collection={held.collection} />}
    </div>
  );
}

function Ttl({ held: { collection, change } }: { readonly held: Held }) {
  const { may } = useTenant();
  const { say } = useToasts();
  const [field, setField] = useState(collection.ttl?.field ?? "");
  const [days, setDays] = useState(String((collection.ttl?.after_s ?? 30 * DAY_S) / DAY_S));
  const [error, setError] = useState<unknown>(null);
  async function save(ttl: { field: string; after_s: number } | null) {
    setError(null);
    try {
      await change({ ttl });
      say(ttl === null ? "Documents stay for ever." : "Time to live saved.");
      if (ttl === null) setField("");
    } catch (thrown) {
      setError(thrown);
    }
  }
  return (
    <section className="card life" aria-label="Time to live">
      <h2>Time to live</h2>
      <p className="soft">
        A document is deleted when the date that it holds in a field is so long past. Documents
        without a date there stay. Subscribers see it leave.
      </p>
      <div className="life-fields">
        <Field label="Field with the date">
          <input
            className="input mono"
            placeholder="done_at"
            value={field}
            onChange={(event) => setField(event.target.value)}
          />
        </Field>
        <Field label="Days after it">
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
          {collection.ttl !== null && (
            <button type="button" className="button" onClick={() => save(null)}>
              Let documents stay
            </button>
          )}
        </div>
      )}
    </section>
  );
}

function Drop({ collection }: { readonly collection: Held["collection"] }) {
  const { name, read_only: isFollowing } = collection;
  const [isAsking, setAsking] = useState(false);
  return (
    <section className="card life" aria-label="Drop the collection">
      <h2>Drop the collection</h2>
      <p className="soft">All documents, indexes and rules go with it, and subscriptions end.</p>
      <div>
        <button type="button" className="button danger" onClick={() => setAsking(true)}>
          Drop {name}
        </button>
      </div>
      {isAsking && (
        <ConfirmDrop list="collections" name={name} next="start" onClose={() => setAsking(false)}>
          This cannot be undone.
          {isFollowing &&
            " Its source is listed until its slot and publication have gone from its database."}
        </ConfirmDrop>
      )}
    </section>
  );
}
