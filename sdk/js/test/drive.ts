/**
 * A client that executes commands and reports its state, for tests that simulate the network, the
 * server and other clients. Commands and reports are JSON; `sdk/python` has the same.
 */

import {
  type Client,
  type ClientOptions,
  createClient,
  type Document,
  type Group,
  type Lookup,
  memoryQueue,
  type Query,
  RillbaseError,
  ServerError,
  stringify,
  type Update,
} from "../src/index.js";

export interface Command {
  readonly do:
    | "open"
    | "watch"
    | "follow"
    | "fetch"
    | "count"
    | "insert"
    | "update"
    | "delete"
    | "transfer"
    | "stop";
  /** Names the reports of this command. */
  readonly name: string;
  readonly options?: ClientOptions & { readonly queued?: boolean };
  readonly collection?: string;
  readonly filter?: Record<string, unknown>;
  readonly group?: Group;
  readonly lookup?: readonly Lookup[];
  readonly sort?: readonly (readonly [string, 1 | -1])[];
  readonly limit?: number;
  readonly id?: unknown;
  readonly body?: Record<string, unknown>;
}

type Report = (text: string) => void;

export class Driver {
  private client: Client | undefined;
  private readonly stops = new Map<string, () => void>();

  constructor(private readonly report: Report) {}

  take(command: Command): void {
    this.perform(command).then(
      (answer) => {
        if (answer !== undefined) this.tell({ name: command.name, ...answer });
      },
      (error: unknown) => this.tell({ name: command.name, error: errorOf(error) }),
    );
  }

  close(): void {
    this.client?.close();
  }

  private async perform(command: Command): Promise<Record<string, unknown> | undefined> {
    switch (command.do) {
      case "open":
        return this.open(command);
      case "watch":
        return this.watch(command);
      case "follow":
        return this.follow(command);
      case "fetch":
        return { documents: await this.query(command).fetch() };
      case "count":
        return { count: await this.query(command).count() };
      case "insert":
        return { ...(await this.collection(command).insert(command.body ?? {})) };
      case "update":
        return {
          ...(await this.collection(command).update(
            command.id,
            (command.body ?? {}) as Update<Document>,
          )),
        };
      case "delete":
        await this.collection(command).delete(command.id);
        return {};
      case "transfer":
        return this.transfer(command);
      case "stop":
        this.stops.get(command.name)?.();
        return {};
    }
  }

  private open({ options }: Command): undefined {
    if (options === undefined) throw new TypeError("options are needed");
    const { queued, ...rest } = options;
    this.client = createClient({ ...rest, ...(queued === true ? { queue: memoryQueue() } : {}) });
  }

  private watch(command: Command): undefined {
    const stop = this.query(command).onSnapshot((snapshot) => {
      const { documents, state, hasPendingWrites, error } = snapshot;
      const shown = { documents, state, pending: hasPendingWrites };
      this.tell({ name: command.name, ...shown, error: error && errorOf(error) });
    });
    this.stops.set(command.name, stop);
  }

  private async follow(command: Command): Promise<undefined> {
    const end = new AbortController();
    this.stops.set(command.name, () => end.abort());
    for await (const event of this.query(command).changes({ signal: end.signal })) {
      this.tell({ name: command.name, event });
    }
  }

  /** Moves one from a document's `n` to another's, in a transaction. */
  private async transfer({
    collection = "",
    body = {},
  }: Command): Promise<Record<string, unknown>> {
    const results = await this.opened.transaction((steps) => {
      steps.collection(collection).update(body.from, { $inc: { n: -1 } });
      steps.collection(collection).update(body.to, { $inc: { n: 1 } });
    });
    return { results };
  }

  private get opened(): Client {
    if (this.client === undefined) throw new TypeError("`open` comes first");
    return this.client;
  }

  private collection({ collection = "" }: Command) {
    return this.opened.collection(collection);
  }

  private query(command: Command): Query {
    let query: Query = this.collection(command);
    if (command.filter !== undefined) query = query.filter(command.filter);
    if (command.group !== undefined) query = query.group(command.group.by, command.group.measures);
    for (const { from, local, as } of command.lookup ?? []) query = query.lookup(from, local, as);
    for (const [field, direction] of command.sort ?? []) query = query.sort(field, direction);
    return command.limit === undefined ? query : query.limit(command.limit);
  }

  private tell(report: Record<string, unknown>): void {
    this.report(stringify(report));
  }
}

function errorOf(error: unknown): Record<string, unknown> {
  if (error instanceof ServerError) return { code: error.code, places: error.places };
  if (error instanceof RillbaseError) return { code: error.code };
  return { code: "unexpected", text: String(error) };
}
