import { newestTasks } from "../lib/queries";
import { server } from "../lib/server";
import { Tasks } from "./Tasks";

// The list differs with each request, so the page is not rendered during the build.
export const dynamic = "force-dynamic";

export default async function Page() {
  const documents = await newestTasks(server).fetch();
  const initial = documents.map(({ _id, title, done }) => ({ _id: String(_id), title, done }));
  return <Tasks initial={initial} />;
}
