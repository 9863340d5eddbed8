/** Fetches a file and hands it to the browser to save. */

import { ServerError } from "rillbase";
import { problemOf } from "./control";

interface Downloading {
  readonly onProgress?: (bytes: number) => void;
  /** Makes the file of the answer. */
  readonly convert?: ((answer: Blob) => Promise<Blob>) | undefined;
}

export async function download(
  path: string,
  init: RequestInit,
  name: string,
  { onProgress = () => {}, convert }: Downloading = {},
): Promise<void> {
  const answer = await fetch(path, init);
  if (!answer.ok || answer.body === null) {
    throw new ServerError(problemOf(await answer.text()), answer.status);
  }
  const parts: BlobPart[] = [];
  let bytes = 0;
  const reader = answer.body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    parts.push(read.value);
    bytes += read.value.length;
    onProgress(bytes);
  }
  const whole = new Blob(parts, { type: answer.headers.get("Content-Type") ?? "" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(convert === undefined ? whole : await convert(whole));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
