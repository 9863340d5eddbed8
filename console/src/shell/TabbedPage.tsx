/** A page with several tabs, each with its own path. */

import { type ReactNode, useEffect, useRef } from "react";
import { Link } from "wouter";
import { useTenant } from "../api/tenant";
import { Skeleton } from "../ui/Empty";
import { ErrorNotice } from "../ui/ErrorNotice";
import { Icon, type IconName } from "../ui/Icon";
import { PageHead } from "./Shell";

interface TabbedPageProps<T> {
  /** The path of its list, below the tenant's. */
  readonly list: string;
  readonly name: string;
  readonly icon: IconName;
  /** The object whose parts the tabs show. */
  readonly label: string;
  /** The first tab is at the path of the object itself. */
  readonly tabs: readonly (readonly [id: string, title: string])[];
  readonly tab: string;
  readonly resource: T | null;
  readonly error: unknown;
  readonly actions?: ReactNode;
  /** Shows a tab of the resource. */
  readonly children: (resource: T) => ReactNode;
}

type Tabs<Id> = readonly [readonly [Id, string], ...(readonly (readonly [Id, string])[])];

/** Returns the tab that an address names; the first one if it names none or an unknown one. */
export function tabOf<Id extends string>(tabs: Tabs<Id>, named: string | undefined): Id {
  return (tabs.find(([id]) => id === named) ?? tabs[0])[0];
}

export function TabbedPage<T>(props: TabbedPageProps<T>) {
  const { list, name, icon, label, tabs, tab, resource, error, actions, children } = props;
  const { slug } = useTenant();
  const path = `/t/${slug}/${list}/${name}`;
  const strip = useRef<HTMLElement>(null);
  // On a phone there are more tabs than fit: the open one is shown.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the tab that moves the strip
  useEffect(() => {
    strip.current
      ?.querySelector('[aria-current="page"]')
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [tab]);
  return (
    <>
      <PageHead
        name={name}
        title={
          <>
            <Icon name={icon} />
            <h1 className="mono cut">{name}</h1>
          </>
        }
      >
        <nav className="tabs" aria-label={label} ref={strip}>
          {tabs.map(([id, title], place) => (
            <Link
              key={id}
              href={place === 0 ? path : `${path}/${id}`}
              aria-current={tab === id ? "page" : undefined}
            >
              {title}
            </Link>
          ))}
        </nav>
        {actions}
      </PageHead>
      {error !== null && (
        <div className="column">
          <ErrorNotice error={error} />
        </div>
      )}
      {resource === null && error === null && <Skeleton rows={10} />}
      {resource !== null && children(resource)}
    </>
  );
}
