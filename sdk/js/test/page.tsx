/** The driver as a page, with a component that shows a query with the hooks. */

import { createElement, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { createClient, type Query } from "../src/index.js";
import { useDocument, useQuery } from "../src/react/index.js";
import { type Command, Driver } from "./drive.js";

declare global {
  interface Window {
    report(text: string): void;
    take(command: Command): void;
    render(options: { url: string; key: string; collection: string }): void;
    unmount(): void;
  }
}

const driver = new Driver((text) => window.report(text));
let root: Root | undefined;

window.take = (command) => driver.take(command);

window.render = ({ url, key, collection }) => {
  const client = createClient({ url, key });
  const todos = client.collection<Todo>(collection);
  root = createRoot(document.getElementById("root") as HTMLElement);
  const list = createElement(List, { todos: () => todos.sort("text"), one: () => todos.doc("a") });
  root.render(createElement(StrictMode, null, list));
};

window.unmount = () => root?.unmount();

interface Todo {
  readonly _id: string;
  readonly text: string;
  readonly [field: string]: unknown;
}

interface ListProps {
  readonly todos: () => Query<Todo>;
  readonly one: () => import("../src/index.js").DocumentRef<Todo>;
}

/** Builds its queries anew with each rendering, as components do. */
function List({ todos, one }: ListProps) {
  const { documents, state, isLoading } = useQuery(todos());
  const { document: first } = useDocument(one());
  const items = documents.map(({ _id, text }) => createElement("li", { key: _id }, text));
  const caption = `${isLoading ? "loading" : state}, a is ${first?.text ?? "nothing"}`;
  return createElement(
    "div",
    null,
    createElement("p", null, caption),
    createElement("ul", null, items),
  );
}
