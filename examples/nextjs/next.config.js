import path from "node:path";

/** The SDK is outside this folder until it is on npm. */
const checkout = path.resolve(import.meta.dirname, "../..");

export default { turbopack: { root: checkout }, outputFileTracingRoot: checkout };
