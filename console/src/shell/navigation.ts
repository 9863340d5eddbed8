/** The console's pages, as the sidebar and the command palette list them. */

import type { Role } from "../api/types";
import type { IconName } from "../ui/Icon";

export interface NavigationPage {
  /** Below `/t/{tenant}`. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** Search keywords besides its title. */
  readonly keywords: string;
  /** The role that may read it. */
  readonly minimumRole: Role;
}

export interface Group {
  readonly title: string;
  readonly pages: readonly NavigationPage[];
}

/** Pages about the tenant as a whole, which stand before its collections. */
export const FIRST_PAGES: readonly NavigationPage[] = [
  {
    path: "/overview",
    title: "Overview",
    icon: "home",
    keywords: "dashboard home charts pinned counts",
    minimumRole: "viewer",
  },
  {
    path: "/start",
    title: "Get started",
    icon: "bolt",
    keywords: "guide tour quickstart first",
    minimumRole: "viewer",
  },
];

export const GROUPS: readonly Group[] = [
  {
    title: "Live",
    pages: [
      {
        path: "/playground",
        title: "Playground",
        icon: "play",
        keywords: "query explain event log",
        minimumRole: "viewer",
      },
      {
        path: "/saved",
        title: "Saved queries",
        icon: "bookmark",
        keywords: "charts dashboard pin bookmarks",
        minimumRole: "viewer",
      },
      {
        path: "/subscriptions",
        title: "Subscriptions",
        icon: "signal",
        keywords: "clients connections kill lag",
        minimumRole: "viewer",
      },
      {
        path: "/activity",
        title: "Activity",
        icon: "activity",
        keywords: "charts events latency clients",
        minimumRole: "viewer",
      },
      {
        path: "/grid",
        title: "Matching grid",
        icon: "grid",
        keywords: "nodes partitions cluster",
        minimumRole: "viewer",
      },
    ],
  },
  {
    title: "Build",
    pages: [
      {
        path: "/topics",
        title: "Topics",
        icon: "pin",
        keywords: "publish subscribe map geo",
        minimumRole: "viewer",
      },
      {
        path: "/aggregates",
        title: "Aggregates",
        icon: "chart",
        keywords: "counts sums rollups measures",
        minimumRole: "viewer",
      },
      {
        path: "/datasets",
        title: "Datasets",
        icon: "layers",
        keywords: "analytics tables upload pipeline iceberg parquet arrow",
        minimumRole: "viewer",
      },
      {
        path: "/graphql",
        title: "GraphQL",
        icon: "code",
        keywords: "graphiql explorer schema",
        minimumRole: "viewer",
      },
      {
        path: "/webhooks",
        title: "Webhooks",
        icon: "webhook",
        keywords: "deliveries redeliver events",
        minimumRole: "viewer",
      },
      {
        path: "/keys",
        title: "API keys",
        icon: "key",
        keywords: "secret publishable token rotate",
        minimumRole: "developer",
      },
    ],
  },
  {
    title: "Tenant",
    pages: [
      {
        path: "/members",
        title: "Members",
        icon: "people",
        keywords: "invite invitations roles team",
        minimumRole: "viewer",
      },
      {
        path: "/usage",
        title: "Usage",
        icon: "star",
        keywords: "quota limits plan",
        minimumRole: "viewer",
      },
      {
        path: "/requests",
        title: "Requests",
        icon: "list",
        keywords: "request log calls latency status debug http access tail",
        minimumRole: "viewer",
      },
      {
        path: "/errors",
        title: "Errors",
        icon: "alert",
        keywords: "error log refused rejected failed problems debug",
        minimumRole: "viewer",
      },
      {
        path: "/audit",
        title: "Audit log",
        icon: "log",
        keywords: "history who changed",
        minimumRole: "admin",
      },
      {
        path: "/settings",
        title: "Settings",
        icon: "settings",
        keywords: "cors origins issuers delete name",
        minimumRole: "viewer",
      },
    ],
  },
];
