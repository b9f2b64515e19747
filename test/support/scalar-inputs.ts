/**
 * Generates scalars as written by people and programs, and malformed ones, from a seed. Excludes cases of the fixture
 * of whole documents: space before a value, a comment directly after a block indicator.
 */
export function scalarInputs(seed: number, count: number): string[] {
  const draw = random(seed);
  const texts = new Set<string>(fixed);
  while (texts.size < count) {
    const text = scalar(draw);
    if (!/^\s|^[|>][^\n]*#/u.test(text)) texts.add(text);
  }
  return [...texts].slice(0, count);
}

type Draw = (below: number) => number;
function random(seed: number): Draw {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}
const words =
  "y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF ~ null Null NULL .nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF << nan inf NaN Infinity -inf nil None yES oN undefined e1 e2 . -. +. .e1 e1234567 123e4567 0x 0b 0o 0 -0 +0 00 -0.0 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 9007199254740993 9007199254740992 2147483647 2147483648 -2147483648 -2147483649 1001.0 1e3 1.50 0x10 010 0o10 0b10 08 09.5 1_000 _1 1_ 0x_1 0b-1 0b+1 -0b1 1e400 1e-400 3.4028236e38 3.5e38 1e-46 1.401298464324817e-45 1:30 12:30:45 190:20:30.15 2001-01-01 2001-12-14t21:59:43.10-05:00 2001-12-14 21:59:43.10 100m 64Mi 1Gi 1e3Mi 0.1 .5 5. +.5 80% http".split(
    " ",
  );
const fixed = ["", ...words];
const pick = <T>(draw: Draw, from: readonly T[]): T => from[draw(from.length)] as T;
const digits = (draw: Draw, alphabet: string, most: number): string =>
  Array.from({ length: 1 + draw(most) }, () => alphabet[draw(alphabet.length)]).join("");
const signs = ["", "", "", "-", "+"];
function integer(draw: Draw): string {
  const sign = pick(draw, signs);
  const long = draw(4) === 0;
  switch (draw(6)) {
    case 0:
      return sign + "0x" + digits(draw, "0123456789abcdefABCDEF", long ? 18 : 6);
    case 1:
      return sign + pick(draw, ["0b", "0B"]) + digits(draw, "01", long ? 66 : 8);
    case 2:
      return sign + pick(draw, ["0o", "0O", "0"]) + digits(draw, "01234567", long ? 24 : 5);
    case 3:
      return sign + "0X" + digits(draw, "0123456789ABCDEF", 16);
    default:
      return sign + digits(draw, "0123456789", long ? 22 : 6);
  }
}
function float(draw: Draw): string {
  const whole = draw(5) ? digits(draw, "0123456789", draw(3) ? 4 : 24) : "";
  const fraction = draw(3) ? "." + (draw(6) ? digits(draw, "0123456789", draw(3) ? 3 : 20) : "") : "";
  const exponent = draw(2)
    ? pick(draw, ["e", "E"]) + pick(draw, signs) + digits(draw, "0123456789", draw(5) ? 2 : 4)
    : "";
  return pick(draw, signs) + whole + fraction + exponent;
}
function underscored(draw: Draw, text: string): string {
  const at = draw(text.length + 1);
  return text.slice(0, at) + "_" + text.slice(at);
}
function date(draw: Draw): string {
  const two = (): string => String(draw(62)).padStart(draw(4) ? 2 : 1, "0");
  const day = `${1900 + draw(200)}-${draw(14)}-${two()}`;
  return (
    day +
    pick(draw, [
      "",
      "",
      `T${two()}:${two()}:${two()}Z`,
      `t${two()}:${two()}:${two()}.${draw(1000)}+0${draw(10)}:00`,
      ` ${two()}:${two()}:${two()}`,
      `T${two()}`,
    ])
  );
}
const alphabet = "0123456789abefxoBOXEnyt_+-.:~TZ KMiGm%/";
const indicators = alphabet + " '\"#&*!|>[]{},?@`\\=<\té😀";
function mutated(draw: Draw, text: string, from: string): string {
  const characters = Array.from(text);
  const letters = Array.from(from);
  for (let times = 1 + draw(2); times > 0; times--) {
    const at = draw(characters.length + 1);
    const kind = draw(3);
    if (kind === 0) characters.splice(at, 0, pick(draw, letters));
    else if (kind === 1) characters.splice(at, 1);
    else characters.splice(at, 1, pick(draw, letters));
  }
  return characters.join("");
}
function noise(draw: Draw, from: string): string {
  const letters = Array.from(from);
  return Array.from({ length: 1 + draw(6) }, () => pick(draw, letters)).join("");
}
const plain = (draw: Draw): string => {
  switch (draw(9)) {
    case 0:
      return pick(draw, words);
    case 1:
      return integer(draw);
    case 2:
      return float(draw);
    case 3:
      return underscored(draw, draw(2) ? integer(draw) : float(draw));
    case 4:
      return date(draw);
    case 5:
      return mutated(draw, pick(draw, words), alphabet);
    case 6:
      return mutated(draw, draw(2) ? integer(draw) : float(draw), alphabet);
    case 7:
      return `${draw(200)}:${draw(70)}${draw(2) ? `:${draw(70)}` : ""}`;
    default:
      return noise(draw, alphabet);
  }
};
const escapes = [
  "\\n",
  "\\t",
  "\\x41",
  "\\u00e9",
  "\\U0001F600",
  "\\\\",
  '\\"',
  "\\/",
  "\\0",
  "\\e",
  "\\_",
  "\\N",
  "\\L",
  "\\P",
  "\\q",
  "\\ ",
  "\\ud83d\\ude00",
  "\\'",
  "\\x4",
  "\\a",
  "\\b",
  "\\v",
  "\\f",
  "\\r",
];
function quoted(draw: Draw, text: string): string {
  if (draw(2)) return `'${text.replaceAll("'", draw(8) ? "''" : "'")}'`;
  const inner = text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return `"${draw(3) ? inner : inner + pick(draw, escapes)}"`;
}
const tags = [
  "!!str",
  "!!int",
  "!!float",
  "!!bool",
  "!!null",
  "!!binary",
  "!!timestamp",
  "!",
  "!local",
  "!!unknown",
  "!<tag:yaml.org,2002:int>",
  "!!map",
  "!!seq",
  "!!merge",
  "!!set",
];
function base64(draw: Draw): string {
  const bytes = Buffer.from(Array.from({ length: draw(7) }, () => (draw(2) ? draw(128) : draw(256))));
  const text = bytes.toString("base64");
  return draw(4) ? text : mutated(draw, text, "aZ9+/= ");
}
function scalar(draw: Draw): string {
  switch (draw(12)) {
    case 0:
      return quoted(draw, plain(draw));
    case 1: {
      const tag = pick(draw, tags);
      const body = tag === "!!binary" ? base64(draw) : plain(draw);
      return `${tag} ${draw(3) ? body : quoted(draw, body)}`;
    }
    case 2:
      return `${pick(draw, ["|", ">", "|-", ">-", "|+", ">+", "|2", "!!int |-"])}\n            ${plain(draw)}${draw(3) ? "" : `\n            ${plain(draw)}`}`;
    case 3:
      return `${plain(draw)}${draw(2) ? "\n" : ""}\n            ${plain(draw)}`;
    case 4:
      return mutated(draw, plain(draw), indicators);
    case 5:
      return draw(3) ? noise(draw, indicators) : `&a ${plain(draw)}`;
    case 6:
      return `${plain(draw)} ${pick(draw, ["# comment", "#", "#a", "x", "- y"])}`;
    default:
      return plain(draw);
  }
}
