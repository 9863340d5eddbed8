import { createClient } from "rillbase";
import { draw } from "./list.js";

const { url, key, owner } = JSON.parse(document.getElementById("settings").textContent);
const tasks = createClient({ url, key, getToken }).collection("personal-tasks");
const [state, error, form, list] = ["state", "error", "new", "tasks"].map((id) =>
  document.getElementById(id),
);

/** The SDK calls this for the first token, and again before each one expires. */
async function getToken() {
  const response = await fetch("/token");
  if (response.redirected) location.assign("/accounts/login/");
  return (await response.json()).token;
}

// The read rule limits the result to the user's documents: the filter needs no owner.
tasks.sort("created", "desc").limit(20).onSnapshot((snapshot) => {
  state.textContent = snapshot.state;
  state.className = `state ${snapshot.state}`;
  if (snapshot.error) show(snapshot.error);
  if (!snapshot.hasAnswer) return;
  draw(list, snapshot.documents, (id, done) => run(tasks.update(id, { $set: { done } })));
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  run(tasks.insert({ title: form.elements.title.value, owner, done: false, created: new Date() }));
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
