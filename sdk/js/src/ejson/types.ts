/**
 * Values that JSON cannot represent. They are immutable, convert to text, and are compared by that
 * text: `id.toString() === other.toString()`.
 */

const HEX = /^[0-9a-f]{24}$/;

/** A document id of 12 bytes: seconds, five random bytes of this process, a counter. */
export class ObjectId {
  /** The 24 hexadecimal digits. */
  readonly hex: string;

  /** Accepts 24 hex digits; without an argument, creates a new id. */
  constructor(hex?: string) {
    const text = hex === undefined ? generated() : hex.toLowerCase();
    if (!HEX.test(text)) throw new TypeError("An ObjectId has 24 hex digits.");
    this.hex = text;
  }

  /** When the id was created, to the second. */
  get madeAt(): Date {
    return new Date(Number.parseInt(this.hex.slice(0, 8), 16) * 1000);
  }

  /** Whether the other value is an `ObjectId` with the same bytes. */
  equals(other: unknown): boolean {
    return other instanceof ObjectId && other.hex === this.hex;
  }

  toString(): string {
    return this.hex;
  }

  toJSON(): unknown {
    return { $oid: this.hex };
  }
}

let processBytes = "";
let counter = 0;

function generated(): string {
  if (processBytes === "") {
    const random = crypto.getRandomValues(new Uint8Array(8));
    processBytes = hexOf(random.subarray(0, 5));
    counter = Number.parseInt(hexOf(random.subarray(5)), 16);
  }
  counter = (counter + 1) & 0xffffff;
  const seconds = Math.floor(Date.now() / 1000).toString(16);
  return seconds.padStart(8, "0") + processBytes + counter.toString(16).padStart(6, "0");
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A decimal number of 34 digits, kept as the text in which it was written. */
export class Decimal128 {
  constructor(
    /** The decimal digits, such as `12.50`. */
    readonly text: string,
  ) {}

  toString(): string {
    return this.text;
  }

  toJSON(): unknown {
    return { $numberDecimal: this.text };
  }
}

/** A whole number of 64 bits, also where a JavaScript number cannot hold it. */
export class Long {
  /** The number. */
  readonly value: bigint;

  constructor(value: bigint | number | string) {
    this.value = BigInt(value);
    if (BigInt.asIntN(64, this.value) !== this.value) {
      throw new RangeError("A Long has 64 bits.");
    }
  }

  toString(): string {
    return this.value.toString();
  }

  toJSON(): unknown {
    return { $numberLong: this.toString() };
  }
}

/** A number that is stored as a double even where it is whole. */
export class Double {
  constructor(
    /** The number. */
    readonly value: number,
  ) {}

  valueOf(): number {
    return this.value;
  }

  toString(): string {
    return String(this.value);
  }

  toJSON(): unknown {
    return { $numberDouble: doubleText(this.value) };
  }
}

/** Bytes. `subType` 0 is plain data, 4 a UUID. */
export class Binary {
  constructor(
    /** The bytes. */
    readonly bytes: Uint8Array,
    /** What the bytes are: 0 plain data, 4 a UUID. */
    readonly subType = 0,
  ) {}

  /** Decodes base64. */
  static fromBase64(text: string, subType = 0): Binary {
    return new Binary(
      Uint8Array.from(atob(text), (char) => char.charCodeAt(0)),
      subType,
    );
  }

  toString(): string {
    return btoa(Array.from(this.bytes, (byte) => String.fromCharCode(byte)).join(""));
  }

  toJSON(): unknown {
    const subType = this.subType.toString(16).padStart(2, "0");
    return { $binary: { base64: this.toString(), subType } };
  }
}

/** MongoDB's internal timestamp: seconds and an ordinal within them. Use `Date` for dates. */
export class Timestamp {
  constructor(
    /** Seconds since 1970. */
    readonly seconds: number,
    /** The ordinal within the second. */
    readonly ordinal: number,
  ) {}

  toString(): string {
    return `${this.seconds}.${this.ordinal}`;
  }

  toJSON(): unknown {
    return { $timestamp: { t: this.seconds, i: this.ordinal } };
  }
}

/** A regular expression as a stored value. Filters also accept JavaScript's own. */
export class RegularExpression {
  constructor(
    /** The pattern without slashes. */
    readonly pattern: string,
    /** The options, such as `i`. */
    readonly options = "",
  ) {}

  toString(): string {
    return `/${this.pattern}/${this.options}`;
  }

  toJSON(): unknown {
    return { $regularExpression: { pattern: this.pattern, options: this.options } };
  }
}

/** The value that sorts before (`MinKey`) or after (`MaxKey`) all others. */
export class Bound {
  private constructor(
    /** The name in Extended JSON. */
    readonly name: "$minKey" | "$maxKey",
  ) {}

  /** The value that sorts before all others. */
  static readonly MIN: Bound = new Bound("$minKey");
  /** The value that sorts after all others. */
  static readonly MAX: Bound = new Bound("$maxKey");

  toString(): string {
    return this.name;
  }

  toJSON(): unknown {
    return { [this.name]: 1 };
  }
}

/** Returns a double as Extended JSON writes it. */
export function doubleText(value: number): string {
  if (Object.is(value, -0)) return "-0.0";
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : String(value);
}
