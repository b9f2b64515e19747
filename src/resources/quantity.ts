/** A quantity's notation, kept when it is formatted: `64Mi`, `100m`, `1e3`. */
export type QuantityFormat = "BinarySI" | "DecimalSI" | "DecimalExponent";

/** An invalid quantity. */
export class QuantityError extends Error {
  constructor(text: string, problem: string) {
    super(`${JSON.stringify(text.slice(0, 64))} is not a quantity: ${problem}`);
    this.name = "QuantityError";
  }
}

export const nanosPerUnit = 1_000_000_000n;
const maxInt64 = 2n ** 63n - 1n;
/** Upstream has no limit; longer texts are hostile, and cost memory. */
const maxTextLength = 128;
const maxExponent = 64;

const decimalSuffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const binarySuffixes = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const quantityPattern = /^([+-]?)(\d*)(?:\.(\d*))?((?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?)$/;
/** The number of digits that always fits an int64. */
const int64Digits = 18;

/**
 * A resource quantity (apimachinery's resource.Quantity): exact to a billionth, of any size. Immutable.
 *
 * @example parseQuantity("1.5Gi").value() // 1610612736n
 * @example parseQuantity("100m").milliValue() // 100n
 */
export class Quantity {
  readonly nanos: bigint;
  readonly format: QuantityFormat;
  /** The original text, if it counts as canonical. */
  readonly #written: string | undefined;

  constructor(nanos: bigint, format: QuantityFormat, written?: string) {
    this.nanos = nanos;
    this.format = format;
    this.#written = written;
  }

  /** Whole units, rounded away from zero; at most the int64 maximum. */
  value(): bigint {
    return clampInt64(divideAwayFromZero(this.nanos, nanosPerUnit));
  }

  /** Thousandths, rounded away from zero; at most the int64 maximum. */
  milliValue(): bigint {
    return clampInt64(divideAwayFromZero(this.nanos, nanosPerUnit / 1000n));
  }

  /** Rounded to thousandths away from zero, the API's precision. */
  inThousandths(): Quantity {
    const step = nanosPerUnit / 1000n;
    return this.nanos % step === 0n ? this : new Quantity(divideAwayFromZero(this.nanos, step) * step, this.format);
  }

  get isZero(): boolean {
    return this.nanos === 0n;
  }

  /** The sum, in this quantity's format; a zero takes the other's. */
  add(other: Quantity): Quantity {
    return new Quantity(this.nanos + other.nanos, this.isZero ? other.format : this.format);
  }

  compare(other: Quantity): number {
    return this.nanos < other.nanos ? -1 : this.nanos > other.nanos ? 1 : 0;
  }

  /** In units of `divisor`, rounded up: the downward API's value. */
  dividedBy(divisor: Quantity): bigint {
    return divideAwayFromZero(this.nanos, divisor.nanos);
  }

  /**
   * Canonical form: no fraction, the fewest digits, the largest suffix without loss. A BinarySI quantity below 1024 or
   * with a fraction is written as DecimalSI. Like upstream, some parsed texts that are not canonical stay unchanged
   * ("+1", "007", "1E3").
   */
  toString(): string {
    if (this.#written !== undefined) return this.#written;
    if (this.isZero) return "0";
    if (this.format === "BinarySI" && this.nanos % nanosPerUnit === 0n) {
      const units = this.nanos / nanosPerUnit;
      if (units <= -1024n || units >= 1024n) return formatBinary(units);
    }
    return formatDecimal(this.nanos, this.format === "DecimalExponent");
  }
}

export const zeroQuantity = new Quantity(0n, "DecimalSI");

/** A quantity of whole units. */
export function quantityOf(units: bigint, format: QuantityFormat): Quantity {
  return new Quantity(units * nanosPerUnit, format);
}

/** A quantity in thousandths, for CPU. */
export function milliQuantity(millis: bigint): Quantity {
  return new Quantity((millis * nanosPerUnit) / 1000n, "DecimalSI");
}

/**
 * Parses a quantity like upstream's ParseQuantity: a sign, digits with at most one point, and one of n u m k M G T P E,
 * Ki … Ei or a decimal exponent (e3, E-3); without digits it is zero. Rounds away from zero to billionths.
 * @throws QuantityError
 */
export function parseQuantity(text: string | number): Quantity {
  const written = String(text);
  if (written === "") throw new QuantityError(written, "it is empty");
  if (written.length > maxTextLength) throw new QuantityError(written, `it is longer than ${maxTextLength} characters`);
  const match = quantityPattern.exec(written);
  if (match === null) throw new QuantityError(written, "write it like 2, 500m or 64Mi");
  const [, sign, whole = "", fraction = "", suffix = ""] = match;
  const { base, exponent, format } = interpretSuffix(written, suffix);
  const digits = BigInt(whole + fraction);
  // These take upstream's slow path, which requires a digit; its fast path accepts none as zero.
  const isFine = base === 2 ? exponent <= 40 : exponent >= -9;
  if (!isFine && whole + fraction === "") throw new QuantityError(written, "it has no digits");
  const scaled = base === 2 ? digits * 2n ** BigInt(exponent) * nanosPerUnit : digits;
  const shift = base === 2 ? -fraction.length : exponent + 9 - fraction.length;
  let nanos = shift >= 0 ? scaled * 10n ** BigInt(shift) : divideAwayFromZero(scaled, 10n ** BigInt(-shift));
  // Upstream caps only binary quantities, and formats binary ones below 1 as decimals.
  if (format === "BinarySI" && nanos > maxInt64 * nanosPerUnit) nanos = maxInt64 * nanosPerUnit;
  const fine = format === "BinarySI" && nanos < nanosPerUnit;
  const kept = keepsText({ whole, fraction, exponent, format }) ? written : undefined;
  return new Quantity(sign === "-" ? -nanos : nanos, fine ? "DecimalSI" : format, kept);
}

/** Like {@link parseQuantity}; undefined for invalid text. */
export function readQuantity(text: string | number): Quantity | undefined {
  try {
    return parseQuantity(text);
  } catch (error) {
    if (error instanceof QuantityError) return undefined;
    throw error;
  }
}

/** Whether upstream's parser treats a text as canonical, as far as it can tell without computing. */
function keepsText({ whole, fraction, exponent, format }: Parts): boolean {
  const shifted = (whole.replace(/^0+/u, "") || "0") + fraction;
  if (format === "BinarySI") {
    const precision = 14 - shifted.length - Math.trunc(exponent * 0.3);
    return fraction === "" && precision >= 0 && BigInt(shifted) % 8n !== 0n;
  }
  const scale = exponent - fraction.length;
  if (shifted.length > int64Digits || scale < -9 || scale % 3 !== 0) return false;
  return !shifted.endsWith("000") && !shifted.startsWith("0");
}

interface Parts {
  readonly whole: string;
  readonly fraction: string;
  readonly exponent: number;
  readonly format: QuantityFormat;
}

function interpretSuffix(text: string, suffix: string): { base: 2 | 10; exponent: number; format: QuantityFormat } {
  const decimal = decimalSuffixes.indexOf(suffix);
  if (decimal >= 0) return { base: 10, exponent: decimal * 3 - 9, format: "DecimalSI" };
  const binary = binarySuffixes.indexOf(suffix);
  if (binary >= 0) return { base: 2, exponent: (binary + 1) * 10, format: "BinarySI" };
  const exponent = Number(suffix.slice(1));
  if (Math.abs(exponent) > maxExponent) throw new QuantityError(text, `its exponent is beyond ${maxExponent}`);
  return { base: 10, exponent, format: "DecimalExponent" };
}

function formatBinary(units: bigint): string {
  let mantissa = units;
  let index = -1;
  while (mantissa % 1024n === 0n && index < binarySuffixes.length - 1) {
    mantissa /= 1024n;
    index++;
  }
  return `${mantissa}${binarySuffixes[index] ?? ""}`;
}

function formatDecimal(nanos: bigint, asExponent: boolean): string {
  let mantissa = nanos;
  let exponent = -9;
  while (mantissa % 1000n === 0n && (asExponent || exponent < 18)) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (asExponent) return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  return `${mantissa}${decimalSuffixes[exponent / 3 + 3] ?? ""}`;
}

function divideAwayFromZero(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  if (dividend % divisor === 0n) return quotient;
  return dividend < 0n === divisor < 0n ? quotient + 1n : quotient - 1n;
}

function clampInt64(value: bigint): bigint {
  return value > maxInt64 ? maxInt64 : value < -maxInt64 ? -maxInt64 : value;
}
