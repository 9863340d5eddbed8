"use server";

import { ObjectId } from "rillbase";
import { server } from "../lib/server";

// Anyone can call these functions with any arguments, as with any endpoint. Check your users'
// session and rights here; the collection's schema checks the documents.
const tasks = server.collection("published-tasks");

export async function addTask(form) {
  await tasks.insert({ title: String(form.get("title")), done: false, created: new Date() });
}

export async function setDone(id, done) {
  await tasks.update(new ObjectId(String(id)), { $set: { done: Boolean(done) } });
}
