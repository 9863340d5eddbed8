/** The navigation: tenant, search, collections, pages, the user's menu. */

import { useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { useSigning, useUser } from "../api/session";
import { useCollections, useTenant, useTenants } from "../api/tenant";
import { Icon } from "../ui/Icon";
import { Menu, MenuItem } from "../ui/Menu";
import { useToasts } from "../ui/toasts";
import { CollectionList } from "./CollectionList";
import { NavigationItem } from "./NavigationItem";
import { NewTenant } from "./NewTenant";
import { FIRST_PAGES, GROUPS } from "./navigation";
import { THEMES, useTheme } from "./theme";

export function Sidebar({
  onSearch,
  onHelp,
  onLeave,
}: {
  readonly onSearch: () => void;
  readonly onHelp: () => void;
  readonly onLeave: () => void;
}) {
  const { may } = useTenant();
  const pages = useOpenPageInView();
  return (
    <aside className="side" aria-label="Navigation">
      <div className="top">
        <TenantSwitch />
        <button type="button" className="search-button" onClick={onSearch}>
          <Icon name="search" size={14} />
          Search
          <span className="keys">
            <kbd>Ctrl</kbd>
            <kbd>K</kbd>
          </span>
        </button>
      </div>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: links have keys of their own; this closes the drawer behind them. */}
      <nav ref={pages} aria-label="Pages" onClick={onLeave}>
        {FIRST_PAGES.map(({ path, icon, title }) => (
          <NavigationItem key={path} to={path} icon={icon}>
            {title}
          </NavigationItem>
        ))}
        <CollectionList />
        {GROUPS.map(({ title, pages }) => (
          <section className="group" key={title} aria-label={title}>
            <div className="caption">{title}</div>
            {pages
              .filter(({ minimumRole }) => may(minimumRole))
              .map((index) => (
                <NavigationItem key={index.path} to={index.path} icon={index.icon}>
                  {index.title}
                </NavigationItem>
              ))}
          </section>
        ))}
      </nav>
      <div className="bottom">
        <UserMenu onHelp={onHelp} />
      </div>
    </aside>
  );
}

/** Scrolls to the open page, which may be below the end of a long sidebar. */
function useOpenPageInView() {
  const pages = useRef<HTMLElement>(null);
  const [location] = useLocation();
  const { data: collections } = useCollections();
  // biome-ignore lint/correctness/useExhaustiveDependencies: both move the link.
  useEffect(() => {
    pages.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: "nearest" });
  }, [location, collections?.length]);
  return pages;
}

function TenantSwitch() {
  const { slug, role } = useTenant();
  const { data: tenants = [] } = useTenants();
  const [, go] = useLocation();
  const [isAdding, setAdding] = useState(false);
  const current = tenants.find((tenant) => tenant.slug === slug);
  return (
    <>
      <Menu
        label="Switch tenant"
        className="tenant-button"
        button={
          <>
            <span className="avatar square">{initials(current?.name || slug)}</span>
            <span className="names">
              <strong className="cut">{current?.name || slug}</strong>
              <small>
                {slug} · {role}
              </small>
            </span>
            <Icon name="down" size={13} />
          </>
        }
      >
        {(close) => (
          <>
            <div className="caption">Tenants</div>
            {tenants.map((tenant) => (
              <MenuItem
                key={tenant.slug}
                onSelect={() => {
                  close();
                  go(`/t/${tenant.slug}`);
                }}
              >
                <span className="cut">{tenant.name || tenant.slug}</span>
                <span className="end">
                  {tenant.slug === slug ? <Icon name="check" size={13} /> : tenant.slug}
                </span>
              </MenuItem>
            ))}
            <hr />
            <MenuItem
              onSelect={() => {
                close();
                setAdding(true);
              }}
            >
              <Icon name="plus" size={14} /> New tenant
            </MenuItem>
          </>
        )}
      </Menu>
      {isAdding && <NewTenant onClose={() => setAdding(false)} />}
    </>
  );
}

function UserMenu({ onHelp }: { readonly onHelp: () => void }) {
  const user = useUser();
  const { signOut } = useSigning();
  const { fail } = useToasts();
  const [, go] = useLocation();
  return (
    <Menu
      label="Account"
      className="user-button"
      button={
        <>
          <span className="avatar">{initials(user.name || user.email)}</span>
          <span className="cut">{user.name || user.email}</span>
        </>
      }
    >
      {(close) => (
        <>
          <div className="caption">{user.email}</div>
          <MenuItem
            onSelect={() => {
              close();
              go("/account");
            }}
          >
            <Icon name="people" size={14} /> Account and tokens
          </MenuItem>
          <a role="menuitem" href="/docs/" target="_blank" rel="noreferrer">
            <Icon name="book" size={14} /> Documentation
          </a>
          <a role="menuitem" href="/api/docs" target="_blank" rel="noreferrer">
            <Icon name="code" size={14} /> API reference
          </a>
          <MenuItem
            onSelect={() => {
              close();
              onHelp();
            }}
          >
            <Icon name="bolt" size={14} /> Keyboard shortcuts
            <span className="end">
              <kbd>?</kbd>
            </span>
          </MenuItem>
          {user.is_staff && (
            <a role="menuitem" href="/staff/">
              <Icon name="shield" size={14} /> Staff admin
            </a>
          )}
          <hr />
          <ThemeChoice />
          <hr />
          <MenuItem onSelect={() => signOut().catch(fail)}>
            <Icon name="external" size={14} /> Sign out
          </MenuItem>
        </>
      )}
    </Menu>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useTheme();
  return (
    <>
      {THEMES.map(([value, title, icon]) => (
        <button
          key={value}
          type="button"
          role="menuitemradio"
          aria-checked={theme === value}
          onClick={() => setTheme(value)}
        >
          <Icon name={icon} size={14} /> {title}
          <span className="end">{theme === value && <Icon name="check" size={13} />}</span>
        </button>
      ))}
    </>
  );
}

function initials(name: string): string {
  const words = name.split(/[\s@._-]+/).filter(Boolean);
  return (
    words
      .slice(0, 2)
      .map((word) => word[0]?.toUpperCase() ?? "")
      .join("") || "?"
  );
}
