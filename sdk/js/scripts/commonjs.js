/** Says that `cjs` holds CommonJS modules, although the package's own are ES modules. */

import { writeFileSync } from "node:fs";

writeFileSync(new URL("../cjs/package.json", import.meta.url), '{ "type": "commonjs" }\n');
