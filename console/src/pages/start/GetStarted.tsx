/** The guided start: rows, ten lines of code, and a row that moves. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { useTenant } from "../../api/tenant";
import { Code } from "../../ui/Code";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Segments } from "../../ui/Field";
import { Icon, type IconName } from "../../ui/Icon";
import { APPS, type AppLanguage, appOf } from "./code";
import { App, ConsoleRows } from "./Ideas";
import { findKey, IDEAS, setUp } from "./setUp";
import "./start.css";

export default function GetStarted() {
  const { slug, api, may } = useTenant();
  const { data: key, error } = useQuery({
    queryKey: [slug, "start"],
    queryFn: () => findKey(api),
    enabled: may("developer"),
  });
  return (
    <div className="column start">
      <header>
        <h2 className="hero">Change a row here, watch it move there.</h2>
        <p className="lead">
          Any query that can be run once can be subscribed to: you receive the result, then every
          change to it. It takes a collection, a key and ten lines of code.
        </p>
      </header>
      {error !== null && <ErrorNotice error={error} />}
      {!may("developer") && (
        <p className="soft">
          A developer of this tenant can set up the example. You can explore the console.
        </p>
      )}
      {may("developer") && key === undefined && error === null && <Skeleton />}
      {key === null && <SetUp />}
      {typeof key === "string" && <Steps apiKey={key} />}
      <QuickStarts />
      <Onwards />
    </div>
  );
}

function SetUp() {
  const { slug, api, client, may } = useTenant();
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  async function begin() {
    setBusy(true);
    setError(null);
    try {
      const key = await setUp(api, client, may("admin"));
      await queries.invalidateQueries({ queryKey: [slug, "collections"] });
      queries.setQueryData([slug, "start"], key);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  }
  return (
    <section className="card begin">
      <div>
        <h3>Set up the example</h3>
        <p className="soft">
          A collection <code>{IDEAS}</code> with four documents and rules that allow everyone to
          vote, and a publishable key for the app. You can delete both at any time.
        </p>
      </div>
      <button type="button" className="button main" disabled={isBusy} onClick={begin}>
        <Icon name="bolt" size={14} /> Set it up
      </button>
      {error !== null && <ErrorNotice error={error} />}
    </section>
  );
}

function Steps({ apiKey }: { readonly apiKey: string }) {
  const { slug } = useTenant();
  const [language, setLanguage] = useState<AppLanguage>("page");
  const { file, code, run } = appOf(language, location.origin, apiKey);
  return (
    <ol className="steps">
      <li>
        <h3>Change a row</h3>
        <p className="soft">
          On the left are the documents of{" "}
          <Link href={`/t/${slug}/collections/${IDEAS}`}>{IDEAS}</Link>; on the right is an app with
          a publishable key, which shows them by votes, live.
        </p>
        <div className="stage-two">
          <ConsoleRows />
          <App apiKey={apiKey} />
        </div>
      </li>
      <li>
        <div className="section-head">
          <h3>
            Run it yourself: save as <code>{file}</code>
          </h3>
          <Segments label="Language" options={APPS} value={language} onChange={setLanguage} />
        </div>
        <Code text={code} label={file} />
        <Code text={run} label="how to run it" />
      </li>
      <li>
        <h3>Now vote above again</h3>
        <p className="soft">
          Your app changes too. Open it in two windows, stop the server and start it again: it
          resumes where it was.
        </p>
      </li>
    </ol>
  );
}

const QUICK_STARTS: readonly (readonly [page: string, title: string])[] = [
  ["react", "React"],
  ["nextjs", "Next.js"],
  ["vue", "Vue"],
  ["svelte", "Svelte"],
  ["plain", "JavaScript"],
  ["node", "Node.js"],
  ["fastapi", "FastAPI"],
  ["django", "Django"],
];

function QuickStarts() {
  return (
    <nav className="quick-starts" aria-label="Quick starts">
      <h3>Build an app with</h3>
      {QUICK_STARTS.map(([page, title]) => (
        <a
          key={page}
          className="button"
          href={`/docs/guide/quickstarts/${page}/`}
          target="_blank"
          rel="noreferrer"
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

const ONWARDS: readonly (readonly [string, IconName, string, string])[] = [
  ["/playground", "play", "Playground", "Write a query, run it live, see how it is executed."],
  [
    "/subscriptions",
    "signal",
    "Subscriptions",
    "Current subscriptions, their rates and their lag.",
  ],
  ["/keys", "key", "API keys", "Secret keys for servers, publishable ones for apps."],
  ["/graphql", "code", "GraphQL", "Types generated from your schemas."],
];

function Onwards() {
  const { slug } = useTenant();
  return (
    <nav className="onwards" aria-label="Next steps">
      {ONWARDS.map(([path, icon, title, text]) => (
        <Link key={path} className="card" href={`/t/${slug}${path}`}>
          <Icon name={icon} />
          <strong>{title}</strong>
          <span className="soft">{text}</span>
        </Link>
      ))}
      <a className="card" href="/api/docs" target="_blank" rel="noreferrer">
        <Icon name="book" />
        <strong>API reference</strong>
        <span className="soft">Every call, with examples to try.</span>
      </a>
    </nav>
  );
}
