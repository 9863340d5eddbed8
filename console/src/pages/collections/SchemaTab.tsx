/** The schema of the documents. */

import { usePageDraft } from "../../api/drafts";
import { dataCall, useTenant } from "../../api/tenant";
import { DefinitionEditor, DefinitionFoot } from "../../ui/definition/DefinitionEditor";
import { formatJson, type JsonObject, memberOf } from "../../ui/definition/exactJson";
import { type Definition, useDefinition } from "../../ui/definition/useDefinition";
import { useSaving } from "../../ui/definition/useSaving";
import { useToasts } from "../../ui/toasts";
import { counted } from "../../ui/units";
import type { CollectionResource } from "./CollectionPage";
import { SchemaForm } from "./schema/SchemaForm";
import { SchemaPreview } from "./schema/SchemaPreview";
import { suggestedSchema } from "./schema/suggest";

const MAX_SAMPLE = 200;

export function SchemaTab({
  resource: { collection, text, change },
}: {
  readonly resource: CollectionResource;
}) {
  const { slug, may } = useTenant();
  const definition = useDefinition({
    base: formatJson(memberOf(text, "schema")),
    member: "schema",
    held: usePageDraft(`${slug}/collections/${collection.name}/schema`),
  });
  const save = useSaving(definition, "Schema", (schema) => change({ schema }));
  const mayChange = may("developer");
  return (
    <div className="column">
      <p className="lead">
        A JSON Schema that every write must satisfy. Existing documents are not checked until they
        are written again. The schema also defines the columns of the grid, the types in GraphQL and
        the form for new documents.
      </p>
      <DefinitionEditor
        definition={definition}
        label="Schema"
        mayChange={mayChange}
        onSubmit={save}
        tools={
          mayChange &&
          definition.value === null && <Suggest name={collection.name} definition={definition} />
        }
        preview={<SchemaPreview collection={collection.name} schema={definition.value} />}
      >
        {(value) => <SchemaForm value={value} onChange={definition.setValue} />}
      </DefinitionEditor>
      <DefinitionFoot definition={definition} onSave={save} />
    </div>
  );
}

interface SuggestProps {
  readonly name: string;
  readonly definition: Definition;
}

/** Fills the form from documents. It saves nothing. */
function Suggest({ name, definition }: SuggestProps) {
  const { slug } = useTenant();
  const { showMessage, fail } = useToasts();
  async function suggest() {
    const { items } = await dataCall<{ readonly items: readonly { document: JsonObject }[] }>(
      slug,
      `/v1/collections/${name}/query`,
      { limit: MAX_SAMPLE },
    );
    definition.setValue(suggestedSchema(items.map(({ document }) => document)));
    showMessage(
      `Inferred from ${counted(items.length, "document")}. Review the schema, then save it.`,
    );
  }
  return (
    <button type="button" className="button" onClick={() => suggest().catch(fail)}>
      Infer from documents
    </button>
  );
}
