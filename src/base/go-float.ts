/**
 * The shortest text that reads back as the same float of 32 bits, in the form of Go's `%g`; `.inf`, `-.inf` and `.nan` as
 * YAML has them.
 */
export function float32Text(value: number): string {
  const single = Math.fround(value);
  if (Number.isNaN(single)) return ".nan";
  if (!Number.isFinite(single)) return single > 0 ? ".inf" : "-.inf";
  const sign = Object.is(single, -0) || single < 0 ? "-" : "";
  if (single === 0) return `${sign}0`;
  const [mantissa = "", exponentText = ""] = shortest(Math.abs(single)).split("e");
  const digits = mantissa.replace(".", "").replace(/0+$/u, "");
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 6) return sign + scientific(digits, exponent);
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  const rest = digits.slice(exponent + 1);
  return sign + whole + (rest === "" ? "" : `.${rest}`);
}

function shortest(single: number): string {
  const exact = single.toExponential(20);
  for (let digits = 0; digits < 8; digits++) {
    const fits = nearest(single, exact, digits).find((text) => Math.fround(Number(text)) === single);
    if (fits !== undefined) return fits;
  }
  return single.toExponential(8);
}

/**
 * The nearest texts of so many digits, the better first. Of two that are as near the even one; a power of two has more
 * room above it than below.
 */
function nearest(single: number, exactText: string, fractionDigits: number): string[] {
  const rounded = single.toExponential(fractionDigits);
  const [exact = "", exponent = ""] = exactText.split("e");
  const end = fractionDigits === 0 ? 1 : fractionDigits + 2;
  const below = exact.slice(0, end);
  if (Number.isInteger(Math.log2(single))) {
    const last = Number(below.at(-1));
    return last === 9 ? [rounded] : [rounded, `${below.slice(0, -1)}${last + 1}e${exponent}`];
  }
  const isTie = /^\.?50*$/u.test(exact.slice(end)) && /[02468]$/u.test(below);
  return [isTie ? `${below}e${exponent}` : rounded];
}

function scientific(digits: string, exponent: number): string {
  const fractionDigits = digits.slice(1);
  const size = String(Math.abs(exponent)).padStart(2, "0");
  return `${digits[0] ?? ""}${fractionDigits === "" ? "" : `.${fractionDigits}`}e${exponent < 0 ? "-" : "+"}${size}`;
}
