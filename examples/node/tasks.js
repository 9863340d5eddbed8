import { createClient } from "rillbase";

const { RILLBASE_URL: url = "http://127.0.0.1:8080", RILLBASE_KEY: key } = process.env;
const [command = "watch", argument] = process.argv.slice(2);
const tasks = createClient({ url, key }).collection("todos");

function watch() {
  const open = tasks.where("owner", "==", "team").sort("rank").limit(20);
  open.onSnapshot(({ documents, state, error }) => {
    console.log(`\n${state}${error ? `: ${error.message}` : ""}`);
    for (const { _id, title, done } of documents) {
      console.log(`[${done ? "x" : " "}] ${title}  (${_id})`);
    }
    if (error) process.exitCode = 1;
  });
}

async function add(title) {
  if (!title) throw new Error("A task needs a title.");
  const rank = Date.now();
  await tasks.insert({ _id: `task-${rank}`, title, owner: "team", done: false, rank });
}

async function toggle(id) {
  const task = await tasks.where("_id", "==", id).first();
  if (!task) throw new Error(`There is no task ${id}.`);
  await tasks.update(id, { $set: { done: !task.done } });
}

const commands = { watch, add, toggle };

try {
  const run = commands[command];
  if (!run) throw new Error("Usage: node tasks.js [watch | add TITLE | toggle ID]");
  await run(argument);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
