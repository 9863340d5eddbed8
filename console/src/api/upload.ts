/** Sends a body and reports progress, which `fetch` cannot. */

import { ServerError } from "rillbase";
import { problemOf } from "./control";

export interface Progress {
  readonly sent: number;
  readonly total: number;
}

interface Sending {
  readonly type: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly onProgress: (progress: Progress) => void;
  /** What is said when the connection breaks. */
  readonly broken: string;
  readonly signal?: AbortSignal;
}

/** Returns the answer's body. A signal that aborts breaks the call off. */
export function upload<T>(
  path: string,
  body: Blob,
  { type, headers, onProgress, broken, signal }: Sending,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const end = () => request.abort();
    request.open("POST", path);
    request.setRequestHeader("Content-Type", type);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    onProgress({ sent: 0, total: body.size });
    request.upload.onprogress = ({ loaded, total }) => onProgress({ sent: loaded, total });
    request.onload = () => {
      if (request.status < 300) resolve(JSON.parse(request.responseText) as T);
      else reject(new ServerError(problemOf(request.responseText), request.status));
    };
    request.onerror = () => reject(new Error(broken));
    request.onabort = () => reject(signal?.reason);
    request.onloadend = () => signal?.removeEventListener("abort", end);
    signal?.addEventListener("abort", end, { once: true });
    request.send(body);
  });
}
