/** The navigation: tenant, search, collections, pages, the user's menu. */

import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { useSigning, useUser } from "../api/session";
import { useCollections, useTenant, useTenants } from "../api/tenant";
import { NewCollection } from "../pages/collections/NewCollection";
import { Icon, type IconName } from "../ui/Icon";
import { Menu, MenuItem } from "../ui/Menu";
import { useToasts } from "../ui/toasts";
import { NewTenant } from "./NewTenant";
import { GROUPS, START } from "./places";
import { useStored } from "./stored";
import { type Theme, useTheme } from "./theme";

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
      <nav aria-label="Pages" onClick={onLeave}>
        <Item to={START.path} icon={START.icon}>
          {START.title}
        </Item>
        <Collections />
        {GROUPS.map(({ title, places }) => (
          <section className="group" key={title} aria-label={title}>
            <div className="caption">{title}</div>
            {places
              .filter(({ minimumRole }) => may(minimumRole))
              .map((place) => (
                <Item key={place.path} to={place.path} icon={place.icon}>
                  {place.title}
                </Item>
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

function Item({
  to,
  icon,
  children,
}: {
  readonly to: string;
  readonly icon: IconName;
  readonly children: ReactNode;
}) {
  const { slug } = useTenant();
  const [location] = useLocation();
  const target = `/t/${slug}${to}`;
  const isHere = location === target || location.startsWith(`${target}/`);
  return (
    <Link href={target} aria-current={isHere ? "page" : undefined}>
      <Icon name={icon} size={15} />
      <span className="cut">{children}</span>
    </Link>
  );
}

/** With more collections than this the list scrolls by itself, and can be filtered. */
const FILTERED_FROM = 8;

function Collections() {
  const { data = [] } = useCollections();
  const { may, slug } = useTenant();
  const [isAdding, setAdding] = useState(false);
  const [isOpen, setOpen] = useStored(`rillbase:collections-open:${slug}`, true);
  const [text, setText] = useState("");
  const isLong = data.length > FILTERED_FROM;
  const wanted = text.trim().toLowerCase();
  const shown = data.filter(({ name }) => name.toLowerCase().includes(wanted));
  return (
    <section className="group" aria-label="Collections">
      <div className="caption">
        <button
          type="button"
          className="fold"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          Collections
          <span className={isOpen ? "" : "folded"}>
            <Icon name="down" size={11} />
          </span>
        </button>
        {may("developer") && (
          <button
            type="button"
            aria-label="New collection"
            title="New collection"
            onClick={() => setAdding(true)}
          >
            <Icon name="plus" size={14} />
          </button>
        )}
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
          {shown.map(({ name }) => (
            <Item key={name} to={`/collections/${name}`} icon="collection">
              {name}
            </Item>
          ))}
        </div>
      )}
      {isAdding && <NewCollection onClose={() => setAdding(false)} />}
    </section>
  );
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

const THEMES: readonly (readonly [Theme, string, IconName])[] = [
  ["system", "System theme", "settings"],
  ["light", "Light", "sun"],
  ["dark", "Dark", "moon"],
];

function UserMenu({ onHelp }: { readonly onHelp: () => void }) {
  const user = useUser();
  const { signOut } = useSigning();
  const { fail } = useToasts();
  const [, go] = useLocation();
  const [theme, setTheme] = useTheme();
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
          <hr />
          <MenuItem onSelect={() => signOut().catch(fail)}>
            <Icon name="external" size={14} /> Sign out
          </MenuItem>
        </>
      )}
    </Menu>
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
