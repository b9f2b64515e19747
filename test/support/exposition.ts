/** One line of the text format. */
export interface Series {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly timeMs: number | undefined;
}

export interface ParsedFamily {
  readonly name: string;
  readonly help: string | undefined;
  readonly type: string | undefined;
  readonly series: readonly Series[];
}

const suffixes = ["_bucket", "_sum", "_count"];
const linePattern = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)(?: (-?\d+))?$/u;
const labelPattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/uy;

/** Parses Prometheus' text format as strictly as Prometheus does. @throws for invalid input */
export function parseExposition(text: string): ParsedFamily[] {
  if (text !== "" && !text.endsWith("\n")) throw new Error("the last line does not end");
  const families: { name: string; help: string | undefined; type: string | undefined; series: Series[] }[] = [];
  const seen = new Set<string>();
  const open = (name: string): (typeof families)[number] => {
    const last = families.at(-1);
    if (last?.name === name) return last;
    if (families.some((each) => each.name === name)) throw new Error(`${name} comes in several places`);
    const family = { name, help: undefined, type: undefined, series: [] };
    families.push(family);
    return family;
  };
  for (const line of text.split("\n").slice(0, -1)) {
    const comment = /^# (HELP|TYPE) (\S+) (.*)$/u.exec(line);
    if (comment !== null) {
      const [, kind, name = "", rest = ""] = comment;
      const family = open(name);
      if (kind === "HELP") family.help = rest;
      else family.type = rest;
      continue;
    }
    const match = linePattern.exec(line);
    if (match === null) throw new Error(`no series: ${line}`);
    const [, name = "", labels = "{}", value = "", time] = match;
    const last = families.at(-1);
    const isPart = last?.type === "histogram" && suffixes.some((suffix) => name === `${last.name}${suffix}`);
    const family = isPart && last !== undefined ? last : open(name);
    if (seen.has(`${name}${labels}`)) throw new Error(`twice: ${line}`);
    seen.add(`${name}${labels}`);
    family.series.push({
      name,
      labels: parseLabels(labels.slice(1, -1), line),
      value: parseValue(value, line),
      timeMs: time === undefined ? undefined : Number(time),
    });
  }
  return families;
}

function parseLabels(text: string, line: string): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  labelPattern.lastIndex = 0;
  while (labelPattern.lastIndex < text.length) {
    const match = labelPattern.exec(text);
    if (match === null) throw new Error(`bad labels: ${line}`);
    const [, name = "", value = ""] = match;
    if (labels.has(name)) throw new Error(`a label comes twice: ${line}`);
    labels.set(
      name,
      value.replaceAll(/\\(.)/gu, (_, letter: string) => (letter === "n" ? "\n" : letter)),
    );
  }
  return labels;
}

function parseValue(text: string, line: string): number {
  if (text === "+Inf") return Number.POSITIVE_INFINITY;
  if (text === "-Inf") return Number.NEGATIVE_INFINITY;
  const value = Number(text);
  if (text !== "NaN" && Number.isNaN(value)) throw new Error(`no number: ${line}`);
  return value;
}

/** The value of the only series with these labels, among others. */
export function valueOf(
  families: readonly ParsedFamily[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const all = families.flatMap(({ series }) => series).filter((series) => series.name === name);
  const found = all.filter((series) =>
    Object.entries(labels).every(([label, value]) => series.labels.get(label) === value),
  );
  if (found.length > 1) throw new Error(`${found.length} series of ${name} have these labels`);
  return found[0]?.value;
}
