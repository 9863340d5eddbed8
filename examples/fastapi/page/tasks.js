import { draw } from "./shared/list.js";

const [state, error, form, list] = ["state", "error", "new", "tasks"].map((id) =>
  document.getElementById(id),
);

// The browser reconnects by itself, and the first message is the current list.
const live = new EventSource("/tasks/live");
live.addEventListener("message", ({ data }) => {
  const board = JSON.parse(data);
  showState(board.state);
  draw(list, board.tasks, (id, done) => send("PATCH", `/tasks/${id}`, { done }));
});
live.addEventListener("error", () => showState("offline"));

function showState(name) {
  state.textContent = name;
  state.className = `state ${name}`;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send("POST", "/tasks", { title: form.elements.title.value });
  form.reset();
});

async function send(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(path, { method, headers, body: JSON.stringify(body) });
  error.hidden = response.ok;
  error.textContent = `The task was not saved (${response.status}).`;
}
