/** GraphQL support of the editors: completion and validation by the schema, names of variables. */

import { autocompletion, type CompletionContext, completionKeymap } from "@codemirror/autocomplete";
import { jsonLanguage } from "@codemirror/lang-json";
import type { Extension } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { graphql as graphqlLanguage } from "cm6-graphql";
import type { GraphQLSchema } from "graphql";
import { variablesOf } from "./operations";

const COMPLETION = [autocompletion({ icons: false }), keymap.of(completionKeymap)];

/** For an operation. A click with Ctrl on a name shows its type. */
export function operationSupport(
  schema: GraphQLSchema | undefined,
  onShow: (type: string, field: string | undefined) => void,
): Extension {
  const onShowInDocs = (field?: string, type?: string, parent?: string) => {
    const shown = parent ?? type;
    if (shown !== undefined) onShow(shown.replace(/[[\]!]/g, ""), field);
  };
  return [graphqlLanguage(schema, { onShowInDocs }), COMPLETION];
}

/** For the variables of an operation: completes their names. */
export function variablesSupport(operation: () => string): Extension {
  const complete = (context: CompletionContext) => {
    const word = context.matchBefore(/"?\w*/);
    if (word === null || (word.from === word.to && !context.explicit)) return null;
    const options = variablesOf(operation()).map(({ name, type }) => ({
      label: `"${name}"`,
      detail: type,
      apply: `"${name}": `,
    }));
    return { from: word.from, options };
  };
  return [jsonLanguage.data.of({ autocomplete: complete }), COMPLETION];
}
