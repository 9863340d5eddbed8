/** The position in a JSON text that a JSON pointer refers to. */

import { jsonLanguage } from "@codemirror/lang-json";

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Returns the value's range, or that of the nearest value around it which is there. */
export function rangeOf(text: string, pointer: string): Range {
  const tree = jsonLanguage.parser.parse(text);
  let node = tree.topNode.firstChild;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    const match = node && childOf(node, name, text);
    if (!match) break;
    node = match;
  }
  return node === null ? { from: 0, to: text.length } : { from: node.from, to: node.to };
}

type Node = NonNullable<ReturnType<typeof jsonLanguage.parser.parse>["topNode"]["firstChild"]>;

function childOf(node: Node, name: string, text: string): Node | null {
  if (node.name === "Array") return valuesOf(node)[Number(name)] ?? null;
  for (const property of node.getChildren("Property")) {
    const label = property.getChild("PropertyName");
    if (label !== null && text.slice(label.from + 1, label.to - 1) === name)
      return property.lastChild;
  }
  return null;
}

function valuesOf(array: Node): Node[] {
  const children: Node[] = [];
  for (let child = array.firstChild; child !== null; child = child.nextSibling) {
    if (!"[],".includes(child.name)) children.push(child);
  }
  return children;
}
