import { createClient } from "rillbase";

const { RILLBASE_URL: url = "http://127.0.0.1:8080", RILLBASE_KEY: key, OWNER: owner = "team" } = process.env;
const [command = "watch", argument] = process.argv.slice(2);
const db = createClient({ url, key });
const tasks = db.collection("todos");

function watch() {
  const open = tasks.where("owner", "==", owner).sort("rank").limit(20);
  open.onSnapshot(({ documents, state, error }) => {
    console.log(`\n${state}${error ? `: ${error.message}` : ""}`);
    for (const { _id, title, done } of documents) console.log(`[${done ? "x" : " "}] ${title}  (${_id})`);
    if (error) process.exitCode = 1;
  });
}

async function toggle(id) {
  const task = await tasks.where("_id", "==", id).first();
  if (!task) throw new Error(`There is no task ${id}.`);
  await tasks.update(id, { $set: { done: !task.done } });
}

const commands = {
  watch,
  add: (title) => tasks.replace(`task-${Date.now()}`, { title, owner, done: false, rank: 1 }),
  toggle,
};

try {
  if (!commands[command]) throw new Error("Usage: node tasks.js [watch | add TITLE | toggle ID]");
  await commands[command](argument);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
