/** The source of a collection and its state, or a form that declares one. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useAttempt, useChange, useList, useOne } from "../../api/list";
import { RESOURCE } from "../../api/resource";
import { useTenant } from "../../api/tenant";
import { Confirm } from "../../ui/Confirm";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field } from "../../ui/Field";
import { FormFoot } from "../../ui/FormFoot";
import { Time } from "../../ui/Time";
import { counted, size } from "../../ui/units";
import { useSubmit } from "../../ui/useSubmit";
import type { CollectionResource } from "./CollectionPage";

interface Source {
  readonly id: string;
  readonly collection: string;
  readonly publication: string;
  readonly connection: string;
  readonly schema: string;
  readonly table: string;
  readonly key: readonly string[];
  readonly paused: boolean;
  readonly state: "starting" | "copying" | "live" | "paused" | "waiting" | "halted" | "removing";
  readonly condition: { readonly code: string; readonly detail: string } | null;
  readonly rows_copied: number;
  readonly copy_reason: string | null;
  readonly confirmed_lsn: string | null;
  readonly slot_bytes: number | null;
  readonly lag_bytes: number | null;
  readonly lag_ms: number | null;
  readonly seen_at: string | null;
  readonly removing_until: string | null;
}

const LOOK_MS = 1_000;
const REMOVED_MS = 5_000;
export function SourceTab({ resource: { collection } }: { readonly resource: CollectionResource }) {
  return (
    <div className="column">
      {collection.read_only ? (
        <Followed collection={collection.name} />
      ) : (
        <Declare collection={collection.name} />
      )}
      <Removed collection={collection.name} />
    </div>
  );
}

function Followed({ collection }: { readonly collection: string }) {
  const path = `collections/${collection}/source`;
  const { may } = useTenant();
  const { data: source, error } = useOne<Source>(path, { refetchMs: LOOK_MS });
  return (
    <section className="card life" aria-label="Source">
      {error !== null && <ErrorNotice error={error} />}
      {source === undefined && error === null && <Skeleton />}
      {source !== undefined && (
        <>
          <div className="section-head">
            <h2>
              Follows{" "}
              <span className="mono">
                {source.schema}.{source.table}
              </span>
            </h2>
            <State source={source} />
          </div>
          {source.condition !== null && (
            <p role="alert">
              <span className="mono">{source.condition.code}</span>: {source.condition.detail}
            </p>
          )}
          <Facts source={source} />
          {may("developer") && <Buttons collection={collection} source={source} />}
        </>
      )}
    </section>
  );
}

/** Removed sources of a collection with this name, until their remains are cleaned up. */
function Removed({ collection }: { readonly collection: string }) {
  const { data: sources } = useList<Source>("sources", { refetchMs: REMOVED_MS });
  const left = (sources ?? []).filter(
    (source) => source.collection === collection && source.state === "removing",
  );
  return left.map((source) => (
    <section key={source.id} className="card life" aria-label="Removed source">
      <div className="section-head">
        <h2>
          Followed{" "}
          <span className="mono">
            {source.schema}.{source.table}
          </span>
        </h2>
        <State source={source} />
      </div>
      <p className="soft">
        The slot and the publication <span className="mono">{source.publication}</span> are being
        dropped in <span className="mono">{source.connection}</span>.
      </p>
      {source.condition !== null && (
        <p role="alert">
          <span className="mono">{source.condition.code}</span>: {source.condition.detail} Rillbase
          stops trying <Time at={source.removing_until} />; the error log then lists what to drop
          manually.
        </p>
      )}
    </section>
  ));
}

function State({ source: { state } }: { readonly source: Source }) {
  const tone = state === "live" ? "good" : state === "halted" ? "bad" : "warn";
  return <span className={`badge ${tone}`}>{state}</span>;
}

function Facts({ source }: { readonly source: Source }) {
  const { lag_ms: lag, lag_bytes: behind, slot_bytes: kept } = source;
  return (
    <dl className="facts">
      <div>
        <dt>Database</dt>
        <dd className="mono">{source.connection}</dd>
      </div>
      <div>
        <dt>Documents are identified by</dt>
        <dd className="mono">{source.key.join(", ")}</dd>
      </div>
      <div>
        <dt>Last transaction arrived after</dt>
        <dd className="number">{lag === null ? "—" : `${lag.toLocaleString()} ms`}</dd>
      </div>
      <div>
        <dt>Log not yet processed</dt>
        <dd className="number">{behind === null ? "—" : size(behind)}</dd>
      </div>
      <div>
        <dt>Log retained by the slot</dt>
        <dd className="number">{kept === null ? "—" : size(kept)}</dd>
      </div>
      <div>
        <dt>Position in the log</dt>
        <dd className="mono">{source.confirmed_lsn ?? "—"}</dd>
      </div>
      <div>
        <dt>Last copy</dt>
        <dd>
          <span className="number">{source.rows_copied.toLocaleString()}</span> rows,{" "}
          <span className="mono">{source.copy_reason ?? "none yet"}</span>
        </dd>
      </div>
      <div>
        <dt>Last checked</dt>
        <dd>
          <Time at={source.seen_at} />
        </dd>
      </div>
    </dl>
  );
}

interface ButtonsProps {
  readonly collection: string;
  readonly source: Source;
}

function Buttons({ collection, source }: ButtonsProps) {
  const path = `collections/${collection}/source`;
  const change = useChange(path);
  const changeCollection = useChange(RESOURCE);
  const attempt = useAttempt();
  const [isAsking, setAsking] = useState(false);
  const pause = () => change(path, { method: "PATCH", body: { paused: !source.paused } });
  return (
    <div>
      <button type="button" className="button main" onClick={() => attempt(pause)}>
        {source.paused ? "Resume" : "Pause"}
      </button>{" "}
      <button
        type="button"
        className="button"
        onClick={() => attempt(() => change(`${path}:rebuild`, { method: "POST" }))}
      >
        Rebuild
      </button>{" "}
      <button type="button" className="button danger" onClick={() => setAsking(true)}>
        Remove
      </button>
      {isAsking && (
        <Confirm
          title="Remove the source?"
          action="Remove"
          onConfirm={() => changeCollection(path, { method: "DELETE" })}
          onClose={() => setAsking(false)}
        >
          The documents remain and become writable. The slot and the publication are dropped from
          the database; until then, the source is listed here.
        </Confirm>
      )}
    </div>
  );
}

/** Only an empty collection can follow a table. */
function Declare({ collection }: { readonly collection: string }) {
  const { slug, client } = useTenant();
  const { data: count, error } = useQuery({
    queryKey: [slug, "count", collection, "source"],
    queryFn: () => client.collection(collection).count(),
  });
  if (error !== null) return <ErrorNotice error={error} />;
  if (count === undefined) return <Skeleton />;
  if (count === 0) return <DeclareForm collection={collection} />;
  return (
    <section className="card life" aria-label="Source">
      <h2>Follow a PostgreSQL table</h2>
      <p className="soft">
        Only an empty collection can follow a table, and this one has {counted(count, "document")}.
        Create another collection for the table.
      </p>
    </section>
  );
}

function DeclareForm({ collection }: { readonly collection: string }) {
  const { may } = useTenant();
  const change = useChange(RESOURCE);
  const [connection, setConnection] = useState("");
  const [table, setTable] = useState("");
  const { error, isPending, submit } = useSubmit(() => {
    const [name = "", schema = "public"] = table.split(".").reverse();
    const body = { connection, schema, table: name };
    return change(`collections/${collection}/source`, { method: "POST", body });
  });
  return (
    <form className="card life" aria-label="Source" onSubmit={submit}>
      <h2>Follow a PostgreSQL table</h2>
      <p className="soft">
        Rillbase copies the rows of a table in your PostgreSQL database, then applies each committed
        change. The collection is read-only while it follows the table.
      </p>
      <Field label="Connection">
        <input
          className="input mono"
          autoComplete="off"
          placeholder="postgresql://user:password@host:5432/database?sslmode=require"
          value={connection}
          onChange={(event) => setConnection(event.target.value)}
        />
      </Field>
      <Field label="Table">
        <input
          className="input mono"
          autoComplete="off"
          placeholder="public.orders"
          value={table}
          onChange={(event) => setTable(event.target.value)}
        />
      </Field>
      {may("developer") && (
        <FormFoot
          error={error}
          action={isPending ? "Connecting…" : "Follow"}
          canSubmit={connection !== "" && table !== "" && !isPending}
        />
      )}
    </form>
  );
}
