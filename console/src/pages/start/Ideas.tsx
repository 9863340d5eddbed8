/** The rows in the console, beside the app that subscribes to them with the publishable key. */

import { type FormEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { type Client, createClient } from "rillbase";
import { useQuery as useLive } from "rillbase/react";
import { useTenant } from "../../api/tenant";
import { Icon } from "../../ui/Icon";
import { useToasts } from "../../ui/toasts";
import { LiveState } from "../collections/documents/GridFoot";
import { keyOf } from "../collections/documents/values";
import { IDEAS } from "./setUp";

interface Idea {
  readonly _id?: unknown;
  readonly title: string;
  readonly votes: number;
  readonly [field: string]: unknown;
}

/** The rows that a member edits. */
export function ConsoleRows() {
  const { client, may } = useTenant();
  const { fail } = useToasts();
  const ideas = useMemo(() => client.collection<Idea>(IDEAS), [client]);
  const { items } = useLive(useMemo(() => ideas.sort("title").limit(20), [ideas]));
  const vote = (id: unknown, by: number) => ideas.update(id, { $inc: { votes: by } }).catch(fail);
  const add = (title: string) => ideas.insert({ title, votes: 0 }).catch(fail);
  return (
    <section className="side-by" aria-label="In the console">
      <h3>In the console</h3>
      <ul className="idea-rows">
        {items.map(({ id, document: { title, votes } }) => (
          <li key={keyOf(id)}>
            <span className="cut">{title}</span>
            <span className="votes">
              <button
                type="button"
                className="button small icon"
                disabled={!may("developer")}
                aria-label={`Remove a vote for ${title}`}
                onClick={() => vote(id, -1)}
              >
                <Icon name="minus" size={12} />
              </button>
              <output className="number">{votes}</output>
              <button
                type="button"
                className="button small icon"
                disabled={!may("developer")}
                aria-label={`Add a vote for ${title}`}
                onClick={() => vote(id, 1)}
              >
                <Icon name="plus" size={12} />
              </button>
            </span>
          </li>
        ))}
      </ul>
      {may("developer") && <NewIdea onAdd={add} />}
    </section>
  );
}

function NewIdea({ onAdd }: { readonly onAdd: (title: string) => void }) {
  const [title, setTitle] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    if (title.trim() === "") return;
    onAdd(title.trim());
    setTitle("");
  }
  return (
    <form onSubmit={submit} className="new-idea">
      <input
        className="input small"
        aria-label="A new idea"
        placeholder="A new idea…"
        maxLength={80}
        value={title}
        onChange={(event) => setTitle(event.target.value)}
      />
      <button type="submit" className="button small">
        Add
      </button>
    </form>
  );
}

/** What the app shows: another client, which has only the publishable key. */
export function App({ apiKey }: { readonly apiKey: string }) {
  const [client, setClient] = useState<Client | null>(null);
  useEffect(() => {
    const made = createClient({ url: location.origin, key: apiKey });
    setClient(made);
    return () => made.close();
  }, [apiKey]);
  return (
    <section className="side-by app" aria-label="In your app">
      <h3>In your app</h3>
      {client !== null && <Board client={client} />}
    </section>
  );
}

function Board({ client }: { readonly client: Client }) {
  const query = useMemo(
    () => client.collection<Idea>(IDEAS).sort("votes", "desc").limit(20),
    [client],
  );
  const { items, state } = useLive(query);
  const list = useGliding(items.map(({ id }) => keyOf(id)).join("\n"));
  const most = Math.max(1, ...items.map(({ document }) => document.votes));
  return (
    <>
      <ol ref={list} className="board">
        {items.map(({ id, document }) => (
          <li key={keyOf(id)} data-id={keyOf(id)}>
            <span
              className="bar"
              style={{ width: `${(Math.max(0, document.votes) / most) * 100}%` }}
            />
            <strong className="number">{document.votes}</strong>
            <span className="cut">{document.title}</span>
          </li>
        ))}
      </ol>
      <p>
        <LiveState state={state} />
      </p>
    </>
  );
}

/** Lets rows glide from where they were when their order changes. */
function useGliding(order: string) {
  const list = useRef<HTMLOListElement>(null);
  const places = useRef(new Map<string, number>());
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the order that moves them.
  useLayoutEffect(() => {
    const before = places.current;
    places.current = new Map();
    for (const row of list.current?.children ?? []) {
      const { id = "" } = (row as HTMLElement).dataset;
      const top = (row as HTMLElement).offsetTop;
      places.current.set(id, top);
      const distance = (before.get(id) ?? top) - top;
      if (distance !== 0 && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
        row.animate([{ transform: `translateY(${distance}px)` }, { transform: "none" }], {
          duration: 380,
          easing: "cubic-bezier(.2,.8,.2,1)",
        });
      }
    }
  }, [order]);
  return list;
}
