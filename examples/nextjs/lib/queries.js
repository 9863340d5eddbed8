/** The query that the server renders and the page subscribes to. */
export function newestTasks(client) {
  return client.collection("published-tasks").sort("created", "desc").limit(20);
}
