/** The routes of the console's pages. Every page is loaded when it is first opened. */

import { Suspense, useEffect } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { SessionProvider, useSession } from "./api/session";
import { TenantProvider, useTenants } from "./api/tenant";
import { SignIn } from "./pages/account/SignIn";
import { lazyPage } from "./shell/lazyPage";
import { Shell } from "./shell/Shell";
import { Boundary } from "./ui/Boundary";
import { Empty } from "./ui/Empty";
import { ErrorNotice } from "./ui/ErrorNotice";

const SignUp = lazyPage(() => import("./pages/account/SignUp"));
const LinkPage = lazyPage(() => import("./pages/account/LinkPage"));
const ForgotPassword = lazyPage(() => import("./pages/account/ForgotPassword"));
const Account = lazyPage(() => import("./pages/account/Account"));
const Welcome = lazyPage(() => import("./pages/account/Welcome"));
const Overview = lazyPage(() => import("./pages/overview/Overview"));
const Start = lazyPage(() => import("./pages/start/Start"));
const CollectionPage = lazyPage(() => import("./pages/collections/CollectionPage"));
const SavedQueries = lazyPage(() => import("./pages/saved/SavedQueries"));
const Playground = lazyPage(() => import("./pages/playground/Playground"));
const Subscriptions = lazyPage(() => import("./pages/live/Subscriptions"));
const Activity = lazyPage(() => import("./pages/live/Activity"));
const Grid = lazyPage(() => import("./pages/live/Grid"));
const Topics = lazyPage(() => import("./pages/topics/Topics"));
const TopicPage = lazyPage(() => import("./pages/topics/TopicPage"));
const Aggregates = lazyPage(() => import("./pages/aggregates/Aggregates"));
const AggregatePage = lazyPage(() => import("./pages/aggregates/AggregatePage"));
const Datasets = lazyPage(() => import("./pages/datasets/Datasets"));
const DatasetPage = lazyPage(() => import("./pages/datasets/DatasetPage"));
const GraphQL = lazyPage(() => import("./pages/graphql/GraphQL"));
const Webhooks = lazyPage(() => import("./pages/webhooks/Webhooks"));
const WebhookPage = lazyPage(() => import("./pages/webhooks/WebhookPage"));
const Keys = lazyPage(() => import("./pages/keys/Keys"));
const Members = lazyPage(() => import("./pages/tenant/Members"));
const Usage = lazyPage(() => import("./pages/tenant/Usage"));
const Requests = lazyPage(() => import("./pages/requests/Requests"));
const Errors = lazyPage(() => import("./pages/errors/Errors"));
const Audit = lazyPage(() => import("./pages/tenant/Audit"));
const Settings = lazyPage(() => import("./pages/tenant/Settings"));

export function App() {
  return (
    <Boundary>
      <Suspense fallback={null}>
        <Switch>
          <Route path="/sign-up" component={SignUp} />
          <Route path="/forgot-password" component={ForgotPassword} />
          <Route path="/sign-in" component={LinkPage} />
          <Route path="/verify-email" component={LinkPage} />
          <Route path="/reset-password" component={LinkPage} />
          <Route path="/invitation" component={LinkPage} />
          <Route component={SignedInApp} />
        </Switch>
      </Suspense>
    </Boundary>
  );
}

function SignedInApp() {
  const { session, error } = useSession();
  if (error !== null) return <ErrorNotice error={error} onRetry={() => location.reload()} />;
  if (session === undefined) return null;
  if (session === null) return <SignIn />;
  return (
    <SessionProvider user={session.user}>
      <Switch>
        <Route path="/" component={Home} />
        <Route path="/account" component={Account} />
        <Route path="/t/:tenant/*?">
          {({ tenant }) => <TenantPages key={tenant} slug={tenant} />}
        </Route>
        <Route component={Nowhere} />
      </Switch>
    </SessionProvider>
  );
}

const LAST_TENANT = "rillbase:tenant";

/** Goes to the tenant that was opened last, or to the first one. */
function Home() {
  const { data: tenants, error } = useTenants();
  if (error !== null) return <ErrorNotice error={error} />;
  if (tenants === undefined) return null;
  const last = localStorage.getItem(LAST_TENANT);
  const open = tenants.filter(({ state }) => state === "active");
  const target = open.find(({ slug }) => slug === last) ?? open[0];
  return target === undefined ? <Welcome /> : <Redirect to={`/t/${target.slug}`} />;
}

function TenantPages({ slug }: { readonly slug: string }) {
  const [location] = useLocation();
  const { data: tenants } = useTenants();
  useEffect(() => localStorage.setItem(LAST_TENANT, slug), [slug]);
  if (tenants === undefined) return null;
  if (!tenants.some((tenant) => tenant.slug === slug)) return <Nowhere />;
  return (
    <TenantProvider slug={slug}>
      <Shell>
        <Boundary resetOn={location}>
          <Switch>
            <Route path="/t/:tenant">
              <Redirect to={`/t/${slug}/overview`} replace />
            </Route>
            <Route path="/t/:tenant/overview" component={Overview} />
            <Route path="/t/:tenant/start" component={Start} />
            <Route path="/t/:tenant/collections/:name/:tab?">
              {({ name, tab }) => <CollectionPage key={name} name={name} tab={tab} />}
            </Route>
            <Route path="/t/:tenant/saved" component={SavedQueries} />
            <Route path="/t/:tenant/playground" component={Playground} />
            <Route path="/t/:tenant/subscriptions" component={Subscriptions} />
            <Route path="/t/:tenant/activity" component={Activity} />
            <Route path="/t/:tenant/grid" component={Grid} />
            <Route path="/t/:tenant/topics" component={Topics} />
            <Route path="/t/:tenant/topics/:name">
              {({ name }) => <TopicPage key={name} name={name} />}
            </Route>
            <Route path="/t/:tenant/aggregates" component={Aggregates} />
            <Route path="/t/:tenant/aggregates/:name">
              {({ name }) => <AggregatePage key={name} name={name} />}
            </Route>
            <Route path="/t/:tenant/datasets" component={Datasets} />
            <Route path="/t/:tenant/datasets/:name/:tab?">
              {({ name, tab }) => <DatasetPage key={name} name={name} tab={tab} />}
            </Route>
            <Route path="/t/:tenant/graphql" component={GraphQL} />
            <Route path="/t/:tenant/webhooks" component={Webhooks} />
            <Route path="/t/:tenant/webhooks/:id">
              {({ id }) => <WebhookPage key={id} id={id} />}
            </Route>
            <Route path="/t/:tenant/keys" component={Keys} />
            <Route path="/t/:tenant/members" component={Members} />
            <Route path="/t/:tenant/usage" component={Usage} />
            <Route path="/t/:tenant/requests" component={Requests} />
            <Route path="/t/:tenant/errors" component={Errors} />
            <Route path="/t/:tenant/audit" component={Audit} />
            <Route path="/t/:tenant/settings" component={Settings} />
            <Route component={Nowhere} />
          </Switch>
        </Boundary>
      </Shell>
    </TenantProvider>
  );
}

function Nowhere() {
  return (
    <Empty
      icon="search"
      title="Page not found"
      actions={
        <a className="button main" href="/">
          Back to the console
        </a>
      }
    >
      The page does not exist, or you are not a member of the tenant.
    </Empty>
  );
}
