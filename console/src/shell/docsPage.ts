/** Which page of the documentation is about a page of the console. */

import pages from "./docs-pages.json";

const TARGETS: Readonly<Record<string, string>> = pages;

/** Returns the address of the documentation for a location, preferring that of the open tab. */
export function docsPage(location: string): string {
  const [, , , list = "", , tab = ""] = location.split("/");
  const target = TARGETS[`/${list}/*/${tab}`] ?? TARGETS[`/${list}`];
  if (target === undefined) return "/docs/";
  const [page, anchor] = target.split("#");
  return `/docs/${page}/${anchor === undefined ? "" : `#${anchor}`}`;
}
