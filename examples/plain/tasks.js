import { createClient } from "rillbase";
import { key, url } from "./settings.js";
import { draw } from "./shared/list.js";

const tasks = createClient({ url, key }).collection("tasks");
const [state, error, form, list] = ["state", "error", "new", "tasks"].map((id) =>
  document.getElementById(id),
);

tasks.sort("created", "desc").limit(20).onSnapshot((snapshot) => {
  state.textContent = snapshot.state;
  state.className = `state ${snapshot.state}`;
  if (snapshot.error) show(snapshot.error);
  draw(list, snapshot.documents, (id, done) => run(tasks.update(id, { $set: { done } })));
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  run(tasks.insert({ title: form.elements.title.value, done: false, created: new Date() }));
  form.reset();
});

function run(write) {
  error.hidden = true;
  write.catch(show);
}

function show({ message }) {
  error.textContent = message;
  error.hidden = false;
}
