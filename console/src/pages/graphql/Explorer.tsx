/** The schema explorer: types, their fields and arguments, with descriptions. */

import {
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
} from "graphql";
import { useState } from "react";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Icon } from "../../ui/Icon";
import { operationFor } from "./operations";

type Field = GraphQLField<unknown, unknown> | GraphQLInputField;

export interface Shown {
  readonly type: string;
  readonly field?: string | undefined;
}

interface ExplorerProps {
  readonly schema: GraphQLSchema | undefined;
  readonly error: unknown;
  /** The path from the root types to the type shown. */
  readonly trail: readonly Shown[];
  readonly onWalk: (trail: readonly Shown[]) => void;
  readonly onChoose: (operation: string) => void;
}

export function Explorer({ schema, error, trail, onWalk, onChoose }: ExplorerProps) {
  const [text, setText] = useState("");
  const last = trail[trail.length - 1];
  const type = last && schema?.getType(last.type);
  return (
    <aside className="graphql-schema" aria-label="Schema">
      <input
        className="input small"
        type="search"
        aria-label="Find a field or a type"
        placeholder="Find a field or a type …"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {error !== null && <ErrorNotice error={error} />}
      {schema !== undefined &&
        (text.trim() !== "" ? (
          <Found schema={schema} text={text.trim().toLowerCase()} onShow={show} />
        ) : type === undefined ? (
          <Roots schema={schema} onShow={show} onChoose={onChoose} />
        ) : (
          <OneType
            type={type}
            field={last?.field}
            onShow={show}
            onBack={() => onWalk(trail.slice(0, -1))}
          />
        ))}
    </aside>
  );

  function show(shown: Shown) {
    setText("");
    onWalk([...trail, shown]);
  }
}

interface ShowProps {
  readonly onShow: (shown: Shown) => void;
}

const ROOTS = [
  ["query", "getQueryType"],
  ["mutation", "getMutationType"],
  ["subscription", "getSubscriptionType"],
] as const;

interface RootsProps extends ShowProps {
  readonly schema: GraphQLSchema;
  readonly onChoose: (operation: string) => void;
}

function Roots({ schema, onShow, onChoose }: RootsProps) {
  return ROOTS.map(([kind, root]) => {
    const type = schema[root]();
    if (!type) return null;
    return (
      <section key={kind} aria-label={kind}>
        <h2 className="soft">{kind}</h2>
        <ul>
          {Object.values(type.getFields()).map((field) => (
            <li key={field.name}>
              <button
                type="button"
                className="field-name"
                title={field.description ?? ""}
                onClick={() => onShow({ type: type.name, field: field.name })}
              >
                <span className="mono">{field.name}</span>
              </button>
              <button
                type="button"
                className="button small icon plain"
                aria-label={`Start an operation with ${field.name}`}
                title="Start an operation"
                onClick={() => onChoose(operationFor(schema, kind, field))}
              >
                <Icon name="plus" size={12} />
              </button>
            </li>
          ))}
        </ul>
      </section>
    );
  });
}

interface OneTypeProps extends ShowProps {
  readonly type: GraphQLNamedType;
  readonly field: string | undefined;
  readonly onBack: () => void;
}

function OneType({ type, field, onShow, onBack }: OneTypeProps) {
  const fields = fieldsOf(type);
  const shown = field === undefined ? undefined : fields.find(({ name }) => name === field);
  return (
    <section aria-label={type.name}>
      <button type="button" className="button small plain back" onClick={onBack}>
        <span className="turned">
          <Icon name="chevron" size={12} />
        </span>
        Back
      </button>
      <h2 className="mono">{shown === undefined ? type.name : `${type.name}.${shown.name}`}</h2>
      {shown === undefined ? (
        <>
          {type.description && <p className="soft">{type.description}</p>}
          {isEnumType(type) && (
            <p className="mono values">
              {type
                .getValues()
                .map(({ name }) => name)
                .join("  ")}
            </p>
          )}
          <ul>
            {fields.map((each) => (
              <FieldOf key={each.name} field={each} onShow={onShow} />
            ))}
          </ul>
        </>
      ) : (
        <Details field={shown} onShow={onShow} />
      )}
    </section>
  );
}

function Details({ field, onShow }: ShowProps & { readonly field: Field }) {
  const args = "args" in field ? field.args : [];
  return (
    <>
      {field.description && <p className="soft">{field.description}</p>}
      {field.deprecationReason && <p className="notice warn">{field.deprecationReason}</p>}
      <p>
        <TypeLink field={field} onShow={onShow} />
      </p>
      {args.length > 0 && <h3 className="soft">Arguments</h3>}
      <ul>
        {args.map((each) => (
          <FieldOf key={each.name} field={each} onShow={onShow} />
        ))}
      </ul>
    </>
  );
}

interface Typed {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly type: Field["type"];
}

function FieldOf({ field, onShow }: ShowProps & { readonly field: Typed }) {
  return (
    <li className="typed">
      <span>
        <span className="mono">{field.name}</span>: <TypeLink field={field} onShow={onShow} />
      </span>
      {field.description && <span className="soft">{field.description}</span>}
    </li>
  );
}

function TypeLink({ field: { type }, onShow }: ShowProps & { readonly field: Typed }) {
  const named = getNamedType(type).name;
  return (
    <button type="button" className="type-link mono" onClick={() => onShow({ type: named })}>
      {String(type)}
    </button>
  );
}

/** The maximum number of search results shown. */
const MAX_FOUND = 60;

interface FoundProps extends ShowProps {
  readonly schema: GraphQLSchema;
  readonly text: string;
}

function Found({ schema, text, onShow }: FoundProps) {
  const found = Object.values(schema.getTypeMap())
    .filter(({ name }) => !name.startsWith("__"))
    .flatMap((type): Shown[] => [
      ...(type.name.toLowerCase().includes(text) ? [{ type: type.name }] : []),
      ...fieldsOf(type)
        .filter(({ name }) => name.toLowerCase().includes(text))
        .map(({ name }) => ({ type: type.name, field: name })),
    ])
    .slice(0, MAX_FOUND);
  if (found.length === 0) return <p className="soft none">No field or type has this name.</p>;
  return (
    <ul>
      {found.map((shown) => (
        <li key={`${shown.type}.${shown.field ?? ""}`}>
          <button type="button" className="field-name" onClick={() => onShow(shown)}>
            <span className="mono">
              <span className="soft">{shown.type}</span>
              {shown.field === undefined ? "" : `.${shown.field}`}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function fieldsOf(type: GraphQLNamedType): readonly Field[] {
  const hasFields = isObjectType(type) || isInterfaceType(type) || isInputObjectType(type);
  return hasFields ? Object.values(type.getFields()) : [];
}
