/** The access rules for end users, and a way to test them as one of them. */

import { usePageDraft } from "../../api/drafts";
import { useTenant } from "../../api/tenant";
import { DefinitionEditor, DefinitionFoot, objectOf } from "../../ui/definition/DefinitionEditor";
import { formatJson, memberOf } from "../../ui/definition/exactJson";
import { useDefinition } from "../../ui/definition/useDefinition";
import { useSaving } from "../../ui/definition/useSaving";
import type { CollectionResource } from "./CollectionPage";
import { RulesForm } from "./rules/RulesForm";
import { TryAs } from "./rules/TryAs";

export function RulesTab({
  resource: { collection, text, change },
}: {
  readonly resource: CollectionResource;
}) {
  const { slug, may } = useTenant();
  const definition = useDefinition({
    base: formatJson(memberOf(text, "access_rules")),
    member: "access_rules",
    held: usePageDraft(`${slug}/collections/${collection.name}/access_rules`),
  });
  const save = useSaving(definition, "Access rules", (rules) =>
    change({ access_rules: rules ?? {} }),
  );
  return (
    <div className="column">
      <p className="lead">
        Access rules apply to apps that use a publishable key, with or without a user's token. The
        scopes of secret keys and the roles of members limit what those can do.
      </p>
      <DefinitionEditor
        definition={definition}
        label="Access rules"
        mayChange={may("developer")}
        height="320px"
        onSubmit={save}
        preview={
          <TryAs
            collection={collection.name}
            rules={definition.value}
            isChanged={definition.isChanged}
          />
        }
      >
        {(value) => <RulesForm rules={objectOf(value)} />}
      </DefinitionEditor>
      <DefinitionFoot definition={definition} onSave={save} />
    </div>
  );
}
