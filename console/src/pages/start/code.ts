/** The app of the guided start, as complete code. */

import { APP_PORT, IDEAS } from "./setUp";

export type AppLanguage = "page" | "node" | "python";

export const APPS: readonly (readonly [AppLanguage, string])[] = [
  ["page", "Web page"],
  ["node", "Node.js"],
  ["python", "Python"],
];

interface App {
  readonly file: string;
  readonly code: string;
  readonly run: string;
}

export function appOf(language: AppLanguage, url: string, key: string): App {
  return { page, node, python }[language](url, key);
}

function page(url: string, key: string): App {
  return {
    file: "app.html",
    code: `<!doctype html>
<ol id="ideas"></ol>
<script type="module">
  import { createClient } from "${url}/static/sdk/index.js";
  const db = createClient({ url: "${url}", key: "${key}" });
  const row = ({ votes, title }) => Object.assign(document.createElement("li"), { textContent: \`\${votes} \${title}\` });
  db.collection("${IDEAS}").sort("votes", "desc").onSnapshot(({ documents }) => {
    document.querySelector("#ideas").replaceChildren(...documents.map(row));
  });
</script>`,
    run: `python3 -m http.server ${APP_PORT} --bind 127.0.0.1   # then open http://127.0.0.1:${APP_PORT}/app.html`,
  };
}

function node(url: string, key: string): App {
  return {
    file: "app.mjs",
    code: `import { createClient } from "./sdk/js/dist/index.js";

const db = createClient({ url: "${url}", key: "${key}" });

db.collection("${IDEAS}").sort("votes", "desc").onSnapshot(({ documents, state }) => {
  console.clear();
  console.log(state);
  for (const { votes, title } of documents) console.log(String(votes).padStart(4), title);
});`,
    run: "node app.mjs   # in the folder of Rillbase",
  };
}

function python(url: string, key: string): App {
  return {
    file: "app.py",
    code: `from rillbase import Client

with Client("${url}", key="${key}") as db:
    for snapshot in db.collection("${IDEAS}").sort("votes", descending=True).watch():
        print(snapshot.state)
        for idea in snapshot.documents:
            print(f"{idea['votes']:4} {idea['title']}")`,
    run: "PYTHONPATH=sdk/python .venv/bin/python app.py",
  };
}
