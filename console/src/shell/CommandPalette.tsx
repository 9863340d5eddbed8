/** Ctrl-K: finds a page, a collection, a tenant or a command by part of its name. */

import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import { useSigning } from "../api/session";
import { useCollections, useTenant, useTenants } from "../api/tenant";
import { pathOf, useSavedQueries } from "../saved/useSavedQueries";
import { Dialog } from "../ui/Dialog";
import { Icon, type IconName } from "../ui/Icon";
import { useToasts } from "../ui/toasts";
import { FIRST_PAGES, GROUPS } from "./navigation";
import { chooseTheme, THEMES } from "./theme";
import "./palette.css";

interface Command {
  readonly id: string;
  readonly title: string;
  readonly note: string;
  readonly icon: IconName;
  readonly keywords: string;
  /** A path, or an action. */
  readonly to: string | (() => void);
}

const MAX_SHOWN = 50;

interface CommandPaletteProps {
  readonly onHelp: () => void;
  readonly onNewCollection: () => void;
  readonly onNewTenant: () => void;
  readonly onClose: () => void;
}

export function CommandPalette(props: CommandPaletteProps) {
  const { onClose } = props;
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, go] = useLocation();
  const commands = useCommands(props);
  const matches = useMemo(() => matching(commands, text), [commands, text]);
  const chosen = matches[Math.min(at, matches.length - 1)];
  function run(command: Command | undefined) {
    if (command === undefined) return;
    onClose();
    if (typeof command.to === "string") go(command.to);
    else command.to();
  }
  function pressed(key: string): boolean {
    if (key === "ArrowDown") setAt((index) => Math.min(index + 1, matches.length - 1));
    else if (key === "ArrowUp") setAt((index) => Math.max(index - 1, 0));
    else if (key === "Enter") run(chosen);
    else return false;
    return true;
  }
  return (
    <Dialog title="Search" onClose={onClose}>
      <div className="palette">
        <div className="box">
          <Icon name="search" />
          <input
            autoFocus
            role="combobox"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant={chosen && `palette-${chosen.id}`}
            aria-label="Go to"
            placeholder="Find a page, a collection, a command…"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setAt(0);
            }}
            onKeyDown={(event) => pressed(event.key) && event.preventDefault()}
          />
          <kbd>Esc</kbd>
        </div>
        <CommandList commands={matches} chosen={chosen} onPoint={setAt} onRun={run} />
        {matches.length === 0 && <p className="nothing">No results for “{text}”.</p>}
      </div>
    </Dialog>
  );
}

interface CommandListProps {
  readonly commands: readonly Command[];
  readonly chosen: Command | undefined;
  readonly onPoint: (index: number) => void;
  readonly onRun: (command: Command) => void;
}

function CommandList({ commands, chosen, onPoint, onRun }: CommandListProps) {
  return (
    <div id="palette-list" role="listbox" aria-label="Results" className="list" tabIndex={-1}>
      {commands.map((command, index) => (
        <div
          key={command.id}
          id={`palette-${command.id}`}
          role="option"
          tabIndex={-1}
          aria-selected={command === chosen}
          ref={command === chosen ? showInList : undefined}
          onMouseMove={() => onPoint(index)}
          onClick={() => onRun(command)}
          onKeyDown={(event) => event.key === "Enter" && onRun(command)}
        >
          <Icon name={command.icon} size={15} />
          <span className="cut">{command.title}</span>
          <span className="note">{command.note}</span>
        </div>
      ))}
    </div>
  );
}

function showInList(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

/** What the menus offer, besides pages. */
function useActions({ onHelp, onNewCollection, onNewTenant }: CommandPaletteProps): Command[] {
  const { may } = useTenant();
  const { signOut } = useSigning();
  const { fail } = useToasts();
  const actions: readonly (Omit<Command, "id" | "note"> | false)[] = [
    may("developer") && {
      title: "New collection",
      icon: "plus",
      keywords: "create add",
      to: onNewCollection,
    },
    { title: "New tenant", icon: "plus", keywords: "create add project", to: onNewTenant },
    ...THEMES.map(([theme, title, icon]) => ({
      title,
      icon,
      keywords: "appearance mode colours colors",
      to: () => chooseTheme(theme),
    })),
    {
      title: "Account and tokens",
      icon: "people",
      keywords: "profile password sessions",
      to: "/account",
    },
    { title: "Keyboard shortcuts", icon: "bolt", keywords: "keys hotkeys help", to: onHelp },
    {
      title: "Sign out",
      icon: "external",
      keywords: "log out leave",
      to: () => void signOut().catch(fail),
    },
  ];
  return actions.flatMap((action) =>
    action === false
      ? []
      : [{ ...action, id: action.title.toLowerCase().replaceAll(" ", "-"), note: "Command" }],
  );
}

function useCommands(props: CommandPaletteProps): Command[] {
  const { slug, may } = useTenant();
  const { data: collections = [] } = useCollections();
  const { data: savedQueries = [] } = useSavedQueries();
  const { data: tenants = [] } = useTenants();
  const actions = useActions(props);
  const pages = [...FIRST_PAGES, ...GROUPS.flatMap((group) => group.pages)].filter(
    ({ minimumRole }) => may(minimumRole),
  );
  return [
    ...collections.map(({ name }) => ({
      id: `collection-${name}`,
      title: name,
      note: "Collection",
      icon: "collection" as const,
      keywords: "documents",
      to: `/t/${slug}/collections/${name}`,
    })),
    ...pages.map(({ path, title, icon, keywords }) => ({
      id: `page${path.replace("/", "-")}`,
      title,
      note: "Page",
      icon,
      keywords,
      to: `/t/${slug}${path}`,
    })),
    ...savedQueries.map((saved) => ({
      id: `saved-${saved.id}`,
      title: saved.name,
      note: "Saved query",
      icon: "bookmark" as const,
      keywords: saved.source,
      to: `/t/${slug}${pathOf(saved)}`,
    })),
    ...tenants
      .filter((tenant) => tenant.slug !== slug)
      .map((tenant) => ({
        id: `tenant-${tenant.slug}`,
        title: tenant.name || tenant.slug,
        note: "Tenant",
        icon: "home" as const,
        keywords: tenant.slug,
        to: `/t/${tenant.slug}`,
      })),
    ...actions,
  ];
}

/** Ranks titles that begin with the text before those that contain it, and keywords last. */
function matching(commands: readonly Command[], text: string): Command[] {
  const typed = text.trim().toLowerCase();
  if (typed === "") return commands.slice(0, MAX_SHOWN);
  const rank = ({ title, keywords }: Command) => {
    const name = title.toLowerCase();
    if (name.startsWith(typed)) return 0;
    if (name.includes(typed)) return 1;
    return keywords.includes(typed) ? 2 : 3;
  };
  return commands
    .map((command) => ({ command, rank: rank(command) }))
    .filter((entry) => entry.rank < 3)
    .sort((a, b) => a.rank - b.rank)
    .map((entry) => entry.command)
    .slice(0, MAX_SHOWN);
}
