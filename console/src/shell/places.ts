/** The console's pages, as the sidebar and the command palette list them. */

import type { Role } from "../api/types";
import type { IconName } from "../ui/Icon";

export interface Place {
  /** Below `/t/{tenant}`. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** Words that find it besides its title. */
  readonly words: string;
  /** Who may read what it shows. */
  readonly least: Role;
}

export interface Group {
  readonly title: string;
  readonly places: readonly Place[];
}

export const START: Place = {
  path: "/start",
  title: "Get started",
  icon: "bolt",
  words: "guide tour quickstart first",
  least: "viewer",
};

export const GROUPS: readonly Group[] = [
  {
    title: "Live",
    places: [
      {
        path: "/playground",
        title: "Playground",
        icon: "play",
        words: "query explain event log",
        least: "viewer",
      },
      {
        path: "/subscriptions",
        title: "Subscriptions",
        icon: "signal",
        words: "clients connections kill lag",
        least: "viewer",
      },
      {
        path: "/activity",
        title: "Activity",
        icon: "activity",
        words: "charts events latency clients",
        least: "viewer",
      },
      {
        path: "/grid",
        title: "Matching grid",
        icon: "grid",
        words: "nodes partitions cluster",
        least: "viewer",
      },
    ],
  },
  {
    title: "Build",
    places: [
      {
        path: "/topics",
        title: "Topics",
        icon: "pin",
        words: "publish subscribe map geo",
        least: "viewer",
      },
      {
        path: "/aggregates",
        title: "Aggregates",
        icon: "chart",
        words: "counts sums rollups measures",
        least: "viewer",
      },
      {
        path: "/datasets",
        title: "Datasets",
        icon: "layers",
        words: "analytics tables upload pipeline iceberg parquet arrow",
        least: "viewer",
      },
      {
        path: "/graphql",
        title: "GraphQL",
        icon: "code",
        words: "graphiql explorer schema",
        least: "viewer",
      },
      {
        path: "/webhooks",
        title: "Webhooks",
        icon: "webhook",
        words: "deliveries redeliver events",
        least: "viewer",
      },
      {
        path: "/keys",
        title: "API keys",
        icon: "key",
        words: "secret publishable token rotate",
        least: "developer",
      },
    ],
  },
  {
    title: "Tenant",
    places: [
      {
        path: "/members",
        title: "Members",
        icon: "people",
        words: "invite invitations roles team",
        least: "viewer",
      },
      {
        path: "/usage",
        title: "Usage",
        icon: "star",
        words: "quota limits plan",
        least: "viewer",
      },
      {
        path: "/errors",
        title: "Errors",
        icon: "alert",
        words: "error log refused failed problems debug",
        least: "viewer",
      },
      {
        path: "/audit",
        title: "Audit log",
        icon: "log",
        words: "history who changed",
        least: "admin",
      },
      {
        path: "/settings",
        title: "Settings",
        icon: "settings",
        words: "cors origins issuers delete name",
        least: "viewer",
      },
    ],
  },
];
