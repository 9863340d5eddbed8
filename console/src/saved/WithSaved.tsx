/** Opens a page with the saved query that its address names: `?saved=…`. */

import { Fragment, type ReactNode } from "react";
import { useSearchParams } from "wouter";
import type { SavedQuery } from "../api/types";
import { Skeleton } from "../ui/Empty";
import { ErrorNotice } from "../ui/ErrorNotice";
import { useSavedQuery } from "./useSavedQueries";

interface WithSavedProps {
  readonly children: (saved: SavedQuery | null) => ReactNode;
}

export function WithSaved({ children }: WithSavedProps) {
  const [search] = useSearchParams();
  const id = search.get("saved");
  if (id === null) return <Fragment key="new">{children(null)}</Fragment>;
  return (
    <Loaded key={id} id={id}>
      {children}
    </Loaded>
  );
}

function Loaded({ id, children }: WithSavedProps & { readonly id: string }) {
  const { data, error } = useSavedQuery(id);
  if (data !== undefined) return children(data);
  if (error === null) return <Skeleton />;
  return (
    <div className="column">
      <ErrorNotice error={error} />
    </div>
  );
}
