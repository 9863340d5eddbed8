import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, type Query } from "../src/index.js";

const client = createClient({ url: "http://127.0.0.1:9", key: "rbp_x" });
// As plain JavaScript sees it, without types.
// biome-ignore lint/suspicious/noExplicitAny: the mistakes below are what types would catch.
const todos = client.collection("todos") as any as Record<keyof Query, (...given: any[]) => any>;

function refuses(call: () => unknown, ...parts: string[]): void {
  assert.throws(call, (error: Error) => {
    assert.ok(error instanceof TypeError);
    for (const part of parts) assert.ok(error.message.includes(part), error.message);
    return true;
  });
}

test("an unknown operator is refused by the call that names the valid ones", () => {
  refuses(() => todos.where("rank", "=", 1), '"="', '"=="', '"not-in"');
  refuses(() => todos.where("rank", undefined, 1), '"=="');
  refuses(() => todos.where("rank", "toString", 1), '"=="');
});

test("arguments of a wrong type are refused", () => {
  refuses(() => todos.where("", "==", 1), "non-empty");
  refuses(() => todos.where("rank", "in", 1), "array");
  refuses(() => todos.filter([]), "object");
  refuses(() => todos.filter(null), "object");
  refuses(() => todos.sort("rank", "down"), '"desc"');
  refuses(() => todos.limit("5"), "whole number");
  refuses(() => todos.offset(-1), "whole number");
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  refuses(() => client.collection(undefined as any), "non-empty");
});

test("a misspelt option is rejected at the call, which lists the valid names", async () => {
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  refuses(() => createClient({ url: "http://a", apiKey: "rbp_x" } as any), '"apiKey"', '"key"');
  await assert.rejects(todos.fetch({ timeout: 5 }), /no option "timeout".*"timeoutMs"/);
});
