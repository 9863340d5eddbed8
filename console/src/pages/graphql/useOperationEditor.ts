/** The state of the GraphQL page: an operation, its variables, and the response to the last run. */

import { useEffect, useMemo, useRef, useState } from "react";
import { useCollections, useTenant } from "../../api/tenant";
import { useHistory } from "../../saved/useHistory";
import { formatJson, parseJson } from "../../ui/definition/exactJson";
import type { Shown } from "./Explorer";
import { firstOperation } from "./firstOperation";
import { operationSupport, variablesSupport } from "./language";
import { kindOf, namesOf, prettified } from "./operations";
import { ask, type Operation, useSchema, useSubscription } from "./transport";

export type OperationEditor = ReturnType<typeof useOperationEditor>;

export function useOperationEditor() {
  const { slug } = useTenant();
  const schema = useSchema(slug);
  const history = useHistory(`rillbase:graphql:${slug}`);
  const subscription = useSubscription(slug);
  const { data: collections } = useCollections();
  const [typed, setOperation] = useState(history.entries[0] ?? null);
  const isReady = typed !== null || (collections !== undefined && !schema.isPending);
  const operation = typed ?? (isReady ? firstOperation(schema.data, collections ?? []) : "");
  const [variables, setVariables] = useState("{}");
  const [chosen, chooseName] = useState("");
  const [answer, setAnswer] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isRunning, setRunning] = useState(false);
  const [trail, setTrail] = useState<readonly Shown[]>([]);
  const names = useMemo(() => namesOf(operation), [operation]);
  const name = names.includes(chosen) ? chosen : (names[0] ?? "");
  const completion = useCompletion(operation, schema.data, setTrail);

  async function execute() {
    setError(null);
    setAnswer(null);
    subscription.stop();
    try {
      const request = {
        query: operation,
        variables: parseJson(variables.trim() || "{}") as Operation["variables"],
        ...(name === "" ? {} : { operationName: name }),
      };
      if (kindOf(operation, name) === "subscription") return subscription.start(request);
      setRunning(true);
      setAnswer(formatJson(await ask(slug, request)));
    } catch (thrown) {
      setError(thrown);
    } finally {
      setRunning(false);
    }
  }
  function run() {
    history.add(operation);
    return execute();
  }
  useFirstRun(isReady && kindOf(operation, name) === "query" ? execute : null);
  const prettify = () => setOperation(prettified(operation));
  return {
    ...{ schema, history, subscription, answer, error, isRunning, run, trail, setTrail },
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

/** Runs the initial operation once it is ready. Only queries are run unasked: they change nothing. */
function useFirstRun(execute: (() => Promise<void>) | null) {
  const hasRun = useRef(false);
  useEffect(() => {
    if (hasRun.current || execute === null) return;
    hasRun.current = true;
    void execute();
  });
}
