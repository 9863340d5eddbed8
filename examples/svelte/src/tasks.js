import { createClient } from "rillbase";

const { VITE_RILLBASE_URL: url, VITE_RILLBASE_KEY: key } = import.meta.env;
const tasks = createClient({ url, key }).collection("tasks");

export const newestTasks = tasks.sort("created", "desc").limit(20);

export function addTask(title) {
  return tasks.insert({ title, done: false, created: new Date() });
}

export function setDone(id, done) {
  return tasks.update(id, { $set: { done } });
}
