/** The layout around the pages of a tenant. */

import { type ReactNode, Suspense, useEffect, useState } from "react";
import { useLocation } from "wouter";
import { NewCollection } from "../pages/collections/NewCollection";
import { Skeleton } from "../ui/Empty";
import { Icon } from "../ui/Icon";
import { CommandPalette } from "./CommandPalette";
import { docsPage } from "./docsPage";
import { lazyPage } from "./lazyPage";
import { NewTenant } from "./NewTenant";
import { Sidebar } from "./Sidebar";
import { isHelpKey } from "./shortcuts";

const ShortcutHelp = lazyPage(() => import("./ShortcutHelp"));

export function Shell({ children }: { readonly children: ReactNode }) {
  const [isSearching, setSearching] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [created, setCreated] = useState<"collection" | "tenant" | null>(null);
  const [isMenuOpen, setMenuOpen] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        setSearching(true);
      } else if (isHelpKey(event)) {
        setHelpOpen(true);
      }
    };
    const toggle = () => setMenuOpen((open) => !open);
    addEventListener("keydown", pressed);
    addEventListener("rillbase:menu", toggle);
    return () => {
      removeEventListener("keydown", pressed);
      removeEventListener("rillbase:menu", toggle);
    };
  }, []);
  return (
    <div className="shell" data-menu={isMenuOpen ? "open" : "closed"}>
      <Sidebar
        onSearch={() => setSearching(true)}
        onHelp={() => setHelpOpen(true)}
        onLeave={() => setMenuOpen(false)}
      />
      {isMenuOpen && (
        <button
          type="button"
          className="veil"
          aria-label="Close the menu"
          onClick={() => setMenuOpen(false)}
        />
      )}
      <main className="stage">
        <Suspense fallback={<Skeleton />}>{children}</Suspense>
      </main>
      {isSearching && (
        <CommandPalette
          onHelp={() => setHelpOpen(true)}
          onNewCollection={() => setCreated("collection")}
          onNewTenant={() => setCreated("tenant")}
          onClose={() => setSearching(false)}
        />
      )}
      {created === "collection" && <NewCollection onClose={() => setCreated(null)} />}
      {created === "tenant" && <NewTenant onClose={() => setCreated(null)} />}
      {isHelpOpen && (
        <Suspense fallback={null}>
          <ShortcutHelp onClose={() => setHelpOpen(false)} />
        </Suspense>
      )}
    </div>
  );
}

interface HeadProps {
  readonly title: ReactNode;
  /** The window's title; the heading where it is a text. */
  readonly name?: string;
  readonly children?: ReactNode;
}

/** The header of a page: its title and actions. */
export function PageHead({ title, name, children }: HeadProps) {
  const [location] = useLocation();
  const shown = name ?? (typeof title === "string" ? title : "");
  useEffect(() => {
    document.title = shown === "" ? "Rillbase" : `${shown} · Rillbase`;
  }, [shown]);
  return (
    <header className="page-head">
      <button
        type="button"
        className="button plain icon menu-toggle"
        aria-label="Menu"
        onClick={() => dispatchEvent(new Event("rillbase:menu"))}
      >
        <Icon name="menu" />
      </button>
      <div className="title">{typeof title === "string" ? <h1>{title}</h1> : title}</div>
      <div className="actions">
        {children}
        <a
          className="button plain docs-link"
          href={docsPage(location)}
          target="_blank"
          rel="noreferrer"
          aria-label="Docs for this page"
        >
          <Icon name="book" />
          <span className="wide-only">Docs</span>
        </a>
      </div>
    </header>
  );
}
