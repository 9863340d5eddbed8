/**
 * Builds `dist` when the package is installed from its folder or packed, as `npm install ./sdk/js`
 * does in a clean clone, which has neither `dist` nor a compiler.
 */

import { execSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cwd = fileURLToPath(new URL("..", import.meta.url));

function run(command) {
  execSync(command, { cwd, stdio: "inherit" });
}

if (!existsSync(new URL("../node_modules/typescript", import.meta.url))) {
  run("npm ci --ignore-scripts --no-audit --no-fund");
}
run("npm run build");
