/** Runs a query again and saves its result. */

import { useState } from "react";
import { sessionHeaders } from "../api/control";
import { download } from "../api/download";
import { useTenant } from "../api/tenant";
import { useToasts } from "../ui/toasts";
import type { ExportFormat, ResultQuery } from "./resultFile";

export function useExport({ path, body, name }: ResultQuery) {
  const { slug } = useTenant();
  const { showMessage, fail } = useToasts();
  const [bytes, setBytes] = useState<number | null>(null);

  async function save({ ending, mediaType, convert }: ExportFormat) {
    const headers = {
      ...sessionHeaders(slug),
      "Content-Type": "application/json",
      "Rillbase-EJSON": "canonical",
      Accept: mediaType,
    };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const file = `${name}.${ending}`;
    setBytes(0);
    try {
      await download(path, init, file, { onProgress: setBytes, convert });
      showMessage(`${file} exported.`);
    } catch (error) {
      fail(error);
    } finally {
      setBytes(null);
    }
  }

  return { save, bytes };
}
