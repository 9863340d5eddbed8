import "server-only"; // Makes an import of this file in a client component a build error.
import { createClient } from "rillbase";

/** The client with the secret key. */
export const server = createClient({
  url: process.env.NEXT_PUBLIC_RILLBASE_URL,
  key: process.env.RILLBASE_KEY,
});
