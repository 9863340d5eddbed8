/** Where the documents of a collection are, and its move to the other backend. */

import { useState } from "react";
import { useTenant } from "../../api/tenant";
import type { Backend, Collection } from "../../api/types";
import { Confirm } from "../../ui/Confirm";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { useToasts } from "../../ui/toasts";
import type { CollectionResource } from "./CollectionPage";

const PLACES: Readonly<Record<Backend, string>> = {
  postgres: "PostgreSQL",
  native: "the storage node",
};

export function StorageCard({
  resource: { collection, change },
}: {
  readonly resource: CollectionResource;
}) {
  const { may } = useTenant();
  const { showMessage } = useToasts();
  const [isMoving, setMoving] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { backend, move } = collection;
  const other: Backend = backend === "native" ? "postgres" : "native";
  const mayMove = may("developer") && !collection.read_only;
  async function cancel() {
    setError(null);
    try {
      await change({ backend });
      showMessage("The collection stays where it is.");
    } catch (thrown) {
      setError(thrown);
    }
  }
  return (
    <section className="card life" aria-label="Storage">
      <h2>Storage</h2>
      <p className="soft">
        The documents are in {PLACES[backend]}. A collection moves while it is read and written;
        live queries continue.
      </p>
      {move !== null && <MoveState move={move} />}
      {error !== null && <ErrorNotice error={error} />}
      {mayMove && (
        <div>
          {move?.state === "copying" ? (
            <button type="button" className="button" onClick={cancel}>
              Cancel the move
            </button>
          ) : (
            <button type="button" className="button" onClick={() => setMoving(true)}>
              Move to {PLACES[other]}
            </button>
          )}
        </div>
      )}
      {isMoving && (
        <Confirm
          title={`Move ${collection.name} to ${PLACES[other]}?`}
          action="Move"
          onConfirm={() => change({ backend: other })}
          onClose={() => setMoving(false)}
        >
          Writes wait for a moment when the last changes are copied. Transactions and lookups need
          collections of one backend.
        </Confirm>
      )}
    </section>
  );
}

function MoveState({ move }: { readonly move: NonNullable<Collection["move"]> }) {
  if (move.state === "failed") {
    return (
      <p className="badge bad" role="alert">
        The move to {PLACES[move.backend]} failed: {move.error}
      </p>
    );
  }
  const { done, total } = move.progress;
  const part = total === 0 ? 0 : Math.min(1, done / total);
  return (
    <p>
      <span className="badge warn number">
        moving to {PLACES[move.backend]}, {Math.floor(part * 100)} %
      </span>{" "}
      <progress className="progress" max={1} value={part} aria-label="Copied" />
    </p>
  );
}
