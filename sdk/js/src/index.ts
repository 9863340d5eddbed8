/** Rillbase for JavaScript and TypeScript: documents, and live queries. */

export {
  Aggregate,
  type AggregateRow,
  type PointInTime,
  type RowQuery,
  type Rows,
} from "./aggregate.js";
export { Client, type ClientOptions, createClient } from "./client.js";
export type { Clock } from "./clock.js";
export { type BulkResult, Collection, type ManyResult } from "./collection.js";
export type { CredentialOptions, Token } from "./credentials.js";
export {
  Dataset,
  type Pipeline,
  type PipelineStage,
  type RowOperation,
  type SqlAnswer,
  type SqlStatement,
  type Stage,
  type StageRead,
  type TableAnswer,
  type TableQuery,
  type TableRow,
  type Upload,
} from "./dataset.js";
export { DocumentRef, type DocumentSnapshot } from "./document.js";
export { decode, parse, parseTyped } from "./ejson/decode.js";
export { encode, stringify } from "./ejson/encode.js";
export { printTyped } from "./ejson/print.js";
export {
  Binary,
  Bound,
  Decimal128,
  Double,
  Long,
  ObjectId,
  RegularExpression,
  Timestamp,
} from "./ejson/types.js";
export type { WrittenDocument } from "./envelope.js";
export {
  ConnectionError,
  type ErrorPlace,
  type Problem,
  RillbaseError,
  ServerError,
  TimeoutError,
} from "./errors.js";
export type { CallOptions } from "./http/http.js";
export type { QueryEvent } from "./live/changes.js";
export type { ConnectionState } from "./live/connection.js";
export type { RowsSnapshot } from "./live/live-rows.js";
export type { SubscriptionState } from "./live/live-topic.js";
export type { Area, Publication } from "./live/publication.js";
export type { Item, ItemChange, QuerySnapshot, QueryState } from "./live/snapshot.js";
export type { Group, Lookup, Measure, QuerySpec } from "./live/spec.js";
export { Query, type SnapshotListener, type WhereOperator } from "./query.js";
export type { GroupRow, LookedUp, WithLookup } from "./shown.js";
export type { StepList, TransactionSteps } from "./steps.js";
export {
  type NewPublication,
  type Place,
  type Published,
  Topic,
  type TopicSubscription,
  type TopicSubscriptionOptions,
} from "./topic.js";
export type { Dial, Socket, SocketEvents } from "./transport/socket.js";
export type { Document, Envelope, Filter, Projection, Update } from "./types.js";
export type { Conditions, UpdateOptions } from "./writes/calls.js";
export { localStorageQueue, memoryQueue, type QueueStorage } from "./writes/storage.js";
