/** The driver as a program: one command per line in, one report per line out. */

import { createInterface } from "node:readline";
import { type Command, Driver } from "./drive.js";

const driver = new Driver((text) => process.stdout.write(`${text}\n`));
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => driver.take(JSON.parse(line) as Command));
lines.on("close", () => {
  driver.close();
});
