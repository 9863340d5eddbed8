"use client";

import { createClient } from "rillbase";
import { useQuery } from "rillbase/react";
import { useState } from "react";
import { newestTasks } from "../lib/queries";
import { addTask, setDone } from "./actions";

const browser = createClient({
  url: process.env.NEXT_PUBLIC_RILLBASE_URL,
  key: process.env.NEXT_PUBLIC_RILLBASE_KEY,
});

export function Tasks({ initial }) {
  const { documents, state, error, isLoading } = useQuery(newestTasks(browser));
  const [failure, setFailure] = useState(null);
  const tasks = isLoading ? initial : documents;

  const run = (write) => write.then(() => setFailure(null), setFailure);

  return (
    <main>
      <header>
        <h1>Tasks</h1>
        <span className={`state ${state}`}>{state}</span>
      </header>
      {(error ?? failure) && <p role="alert">{(error ?? failure).message}</p>}
      <form action={(form) => run(addTask(form))}>
        <input name="title" aria-label="New task" placeholder="What needs to be done?" required />
        <button type="submit">Add</button>
      </form>
      <ul>
        {tasks.map(({ _id, title, done }) => (
          <li key={String(_id)}>
            <label>
              <input
                type="checkbox"
                checked={done}
                onChange={() => run(setDone(String(_id), !done))}
              />
              <span>{title}</span>
            </label>
          </li>
        ))}
      </ul>
    </main>
  );
}
