/** The state of the GraphQL page: an operation, its variables, and the response to the last run. */

import { useMemo, useRef, useState } from "react";
import { useTenant } from "../../api/tenant";
import type { Shown } from "./Explorer";
import { useHistory } from "./history";
import { operationSupport, variablesSupport } from "./language";
import { kindOf, namesOf, prettified } from "./operations";
import { ask, useSchema, useSubscription } from "./transport";

const FIRST = `# Ctrl+Space completes, Ctrl+Enter runs, Ctrl+click shows a type.
query First {
  documents(collection: "todos", first: 3) {
    totalCount
    nodes { key version document }
  }
}
`;

export type OperationEditor = ReturnType<typeof useOperationEditor>;

export function useOperationEditor() {
  const { slug } = useTenant();
  const schema = useSchema(slug);
  const history = useHistory(slug);
  const subscription = useSubscription(slug);
  const [operation, setOperation] = useState(history.operations[0] ?? FIRST);
  const [variables, setVariables] = useState("{}");
  const [chosen, chooseName] = useState("");
  const [answer, setAnswer] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [trail, setTrail] = useState<readonly Shown[]>([]);
  const names = useMemo(() => namesOf(operation), [operation]);
  const name = names.includes(chosen) ? chosen : (names[0] ?? "");
  const completion = useCompletion(operation, schema.data, setTrail);

  async function run() {
    setError(null);
    try {
      const request = {
        query: operation,
        variables: JSON.parse(variables.trim() || "{}") as Record<string, unknown>,
        ...(name === "" ? {} : { operationName: name }),
      };
      history.add(operation);
      subscription.stop();
      if (kindOf(operation, name) === "subscription") {
        setAnswer(null);
        subscription.start(request);
      } else {
        setAnswer(JSON.stringify(await ask(slug, request), null, 2));
      }
    } catch (thrown) {
      setError(thrown);
    }
  }
  const prettify = () => setOperation(prettified(operation));
  return {
    ...{ schema, history, subscription, answer, error, run, trail, setTrail },
    ...{ operation, setOperation, prettify, variables, setVariables, names, name, chooseName },
    ...completion,
  };
}

type Schema = ReturnType<typeof useSchema>["data"];

/** Editor extensions that complete an operation and its variables from the schema. */
function useCompletion(
  operation: string,
  schema: Schema,
  onShow: (trail: readonly Shown[]) => void,
) {
  const latest = useRef(operation);
  latest.current = operation;
  const support = useMemo(
    () => operationSupport(schema, (type, field) => onShow([{ type, field }])),
    [schema, onShow],
  );
  const variableSupport = useMemo(() => variablesSupport(() => latest.current), []);
  return { support, variableSupport };
}
