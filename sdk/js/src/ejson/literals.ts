/** The numbers in a JSON text, which `JSON.parse` would round or whose type it would lose. */

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const WHOLE = /^-?\d+$/;

/**
 * Parses JSON. Integers beyond 2^53 become `{"$numberLong": …}`; with `areTyped`, whole numbers that
 * are written with a point or an exponent become `{"$numberDouble": …}`.
 */
export function withExactNumbers(text: string, areTyped: boolean): unknown {
  // First the text itself, so that errors refer to its own positions.
  const plain: unknown = JSON.parse(text);
  const marked = text.replace(TOKENS, (token) =>
    token.startsWith('"') ? token : marking(token, areTyped),
  );
  return marked === text ? plain : JSON.parse(marked);
}

function marking(literal: string, areTyped: boolean): string {
  const value = Number(literal);
  if (!WHOLE.test(literal)) {
    const isWrapped = areTyped && Number.isInteger(value);
    return isWrapped ? `{"$numberDouble":"${literal}"}` : literal;
  }
  if (Number.isSafeInteger(value)) return literal;
  // An integer of more than 64 bits is a double, here as in the server.
  const whole = BigInt(literal);
  return BigInt.asIntN(64, whole) === whole ? `{"$numberLong":"${literal}"}` : literal;
}

/** Returns the plain number that the server reads as this value of Extended JSON, if there is one. */
export function literalOf(name: string, text: unknown): string | undefined {
  if (typeof text !== "string") return undefined;
  if (name === "$numberDouble") return /[.e]/.test(text) ? jsonNumber(text) : undefined;
  if (name !== "$numberLong" || !WHOLE.test(text)) return undefined;
  const whole = BigInt(text);
  return BigInt.asIntN(32, whole) === whole ? undefined : text;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function jsonNumber(text: string): string | undefined {
  return JSON_NUMBER.test(text) ? text : undefined;
}
