/** The names of limits and metrics, and their amounts, for people. */

import { size } from "../../ui/units";

/** Limits and metrics whose names in the API say too little by themselves. */
const TITLES: Readonly<Record<string, string>> = {
  requests: "API requests",
  control_requests: "Console and control plane requests",
  aggregate_events: "Aggregate events",
  requests_per_s: "Requests per second",
  requests_burst: "Requests in a burst",
  issuers: "Token issuers",
  subscriptions: "Live subscriptions",
  connections: "Live connections",
  cluster_write_partitions: "Dedicated grid, write partitions",
  dataset_bytes: "Dataset storage",
};

export function titleOf(name: string): string {
  const title = TITLES[name];
  if (title !== undefined) return title;
  const text = name
    .replace(/_bytes$/, "")
    .replace(/_per_s$/, " per second")
    .replace(/^api_/, "API ")
    .replaceAll("_", " ");
  return text[0]?.toUpperCase() + text.slice(1);
}

/** The smallest limits that mean "none": those of the plan `unlimited`. */
const NO_LIMIT = 1e9;
const NO_LIMIT_OF_BYTES = 1e15;

export function isUnlimited(name: string, limit: number): boolean {
  return limit >= (name.includes("bytes") ? NO_LIMIT_OF_BYTES : NO_LIMIT);
}

export function amountOf(name: string, amount: number): string {
  return name.includes("bytes") ? size(amount) : amount.toLocaleString("en");
}
