import { useQuery } from "rillbase/react";
import { useState } from "react";
import { addTask, newestTasks, setDone } from "./tasks";

export function Tasks() {
  const { documents, state, error } = useQuery(newestTasks);
  const [title, setTitle] = useState("");
  const [failure, setFailure] = useState(null);

  const run = (write) => write.then(() => setFailure(null), setFailure);

  function submit(event) {
    event.preventDefault();
    run(addTask(title));
    setTitle("");
  }

  return (
    <main>
      <header>
        <h1>Tasks</h1>
        <span className={`state ${state}`}>{state}</span>
      </header>
      {(error ?? failure) && <p role="alert">{(error ?? failure).message}</p>}
      <form onSubmit={submit}>
        <input
          aria-label="New task"
          placeholder="What needs to be done?"
          required
          value={title}
          onChange={(event) => setTitle(event.target.value)}
        />
        <button type="submit">Add</button>
      </form>
      <ul>
        {documents.map((task) => (
          <li key={task._id}>
            <label>
              <input
                type="checkbox"
                checked={task.done}
                onChange={() => run(setDone(task._id, !task.done))}
              />
              <span>{task.title}</span>
            </label>
          </li>
        ))}
      </ul>
    </main>
  );
}
