/** The parts of a client, as its collections and queries use them. */

import type { Clock } from "./clock.js";
import type { Http } from "./http/http.js";
import type { Connection } from "./live/connection.js";
import type { FailureReport } from "./live/followed.js";
import type { Registry } from "./live/registry.js";
import type { Outbox } from "./writes/outbox.js";

export interface Core {
  readonly http: Http;
  readonly clock: Clock;
  readonly connection: Connection;
  readonly live: Registry;
  readonly report: FailureReport;
  readonly outbox: Outbox;
}
