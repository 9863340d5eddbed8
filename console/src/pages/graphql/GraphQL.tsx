/** GraphQL by hand: an operation, its variables, the answer, and what the schema offers. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sessionHeaders } from "../../api/control";
import { useTenant } from "../../api/tenant";
import { PageHead } from "../../shell/Shell";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { Schema } from "./Schema";
import "./graphql.css";

const FIRST = `{
  documents(collection: "todos", first: 3) {
    totalCount
    nodes { key version document }
  }
}`;

export default function GraphQL() {
  const { slug } = useTenant();
  const [operation, setOperation] = useState(FIRST);
  const [variables, setVariables] = useState("{}");
  const [answer, setAnswer] = useState("");
  const [error, setError] = useState<unknown>(null);
  const schema = useQuery({
    queryKey: [slug, "graphql"],
    queryFn: () => ask(slug, INTROSPECTION, {}),
    staleTime: 30_000,
  });
  async function run() {
    setError(null);
    try {
      setAnswer(JSON.stringify(await ask(slug, operation, JSON.parse(variables || "{}")), null, 2));
    } catch (thrown) {
      setError(thrown);
    }
  }
  return (
    <>
      <PageHead title="GraphQL">
        <button type="button" className="button main" onClick={run}>
          <Icon name="play" size={13} /> Run
        </button>
      </PageHead>
      <div className="page-body fill">
        <div className="graphql">
          <Schema read={schema} onChoose={setOperation} />
          <div className="graphql-ask">
            <JsonEditor
              label="Operation"
              language="plain"
              value={operation}
              onChange={setOperation}
              onSubmit={run}
              height="100%"
            />
            <JsonEditor
              label="Variables"
              value={variables}
              onChange={setVariables}
              onSubmit={run}
              height="120px"
            />
          </div>
          <div className="graphql-answer">
            {error !== null && <ErrorNotice error={error} />}
            <JsonEditor label="Answer" value={answer} height="100%" />
          </div>
        </div>
      </div>
    </>
  );
}

async function ask(slug: string, query: string, variables: object): Promise<unknown> {
  const answer = await fetch("/graphql", {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", ...sessionHeaders(slug) },
    body: JSON.stringify({ query, variables }),
  });
  return answer.json();
}

const TYPE = "name kind ofType { name kind ofType { name kind ofType { name kind } } }";
const INTROSPECTION = `{
  __schema {
    queryType { fields { name description args { name type { ${TYPE} } } type { ${TYPE} } } }
    mutationType { fields { name description args { name type { ${TYPE} } } type { ${TYPE} } } }
    subscriptionType { fields { name description args { name type { ${TYPE} } } type { ${TYPE} } } }
  }
}`;
