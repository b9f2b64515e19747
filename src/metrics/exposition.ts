import type { Family } from "./family.ts";

/**
 * Prometheus' text format, whatever the client prefers. Not OpenMetrics, as upstream: it would rename counters such as
 * `kubelet_evictions`, which dashboards and alerts know by that name.
 */
export const expositionType = "text/plain; version=0.0.4; charset=utf-8";

/** Whether a client accepts gzip (Accept-Encoding), as all scrapers do. */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  const weights = new Map<string, number>();
  for (const coding of (acceptEncoding ?? "").split(",")) {
    const [name = "", ...parameters] = coding.split(";").map((part) => part.trim().toLowerCase());
    const weight = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
    weights.set(name, Number(weight));
  }
  return (weights.get("gzip") ?? weights.get("*") ?? 0) > 0;
}

/** What a scraper reads. Families without series are left out, as a name without a value says nothing. Pure. */
export function expose(families: readonly Family[]): string {
  const parts: string[] = [];
  for (const family of families) if (family.samples.length > 0) exposeFamily(parts, family);
  return parts.join("");
}

function exposeFamily(parts: string[], family: Family): void {
  const { name, help, type, stability } = family;
  const said = stability === undefined ? help : `[${stability}] ${help}`;
  parts.push(`# HELP ${name} ${escapeHelp(said)}\n# TYPE ${name} ${type}\n`);
  if (family.type === "histogram") {
    for (const sample of family.samples) exposeHistogram(parts, family, sample);
    return;
  }
  for (const { labels, value, timeMs } of family.samples) {
    const time = timeMs === undefined ? "" : ` ${Math.round(timeMs)}`;
    parts.push(`${name}${labelText(family.labels, labels)} ${numberText(value)}${time}\n`);
  }
}

function exposeHistogram(
  parts: string[],
  { name, labels: names, bounds }: Extract<Family, { type: "histogram" }>,
  {
    labels,
    buckets,
    sum,
  }: { readonly labels: readonly string[]; readonly buckets: readonly number[]; readonly sum: number },
): void {
  let count = 0;
  const own = labelPairs(names, labels);
  const prefix = own === "" ? `${name}_bucket{le="` : `${name}_bucket{${own},le="`;
  for (const [index, bound] of [...bounds, Number.POSITIVE_INFINITY].entries()) {
    count += buckets[index] ?? 0;
    parts.push(`${prefix}${numberText(bound)}"} ${count}\n`);
  }
  const braces = own === "" ? "" : `{${own}}`;
  parts.push(`${name}_sum${braces} ${numberText(sum)}\n${name}_count${braces} ${count}\n`);
}

function labelText(names: readonly string[], values: readonly string[]): string {
  const pairs = labelPairs(names, values);
  return pairs === "" ? "" : `{${pairs}}`;
}

/** Labels that many series share: the same arrays of names and values have the same text. */
const rendered = new WeakMap<readonly string[], { readonly names: readonly string[]; readonly text: string }>();

function labelPairs(names: readonly string[], values: readonly string[]): string {
  const known = rendered.get(values);
  if (known?.names === names) return known.text;
  const text = renderPairs(names, values);
  rendered.set(values, { names, text });
  return text;
}

function renderPairs(names: readonly string[], values: readonly string[]): string {
  let text = "";
  for (let index = 0; index < names.length; index++) {
    text += `${index === 0 ? "" : ","}${names[index]}="${escapeLabel(values[index] ?? "")}"`;
  }
  return text;
}

const special = /[\\\n"]/u;

/** Values come from pods: whatever they hold stays inside the quotes. */
function escapeLabel(value: string): string {
  if (!special.test(value)) return value;
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function escapeHelp(help: string): string {
  return help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return `${value}`;
}
