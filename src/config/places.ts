import type { FieldPath, Origin } from "../yaml/manifest-error.ts";
import { configurationFlags } from "./flag-table.ts";
import { isJsonMap, type JsonMap } from "./json.ts";

/** The settings of one file or of the command line. */
export interface ConfigurationLayer {
  /** Path of the file, or `the command line`. */
  readonly place: string;
  readonly values: JsonMap;
  /** Positions in the file. */
  readonly origin?: Origin;
}

/** `/etc/kubelet.yaml:7:3` of the layer that decides the field; undefined if none sets it. */
export function placeOfField(layers: readonly ConfigurationLayer[], path: FieldPath): string | undefined {
  const layer = layers.findLast(({ values }) => has(values, path));
  return layer && placeIn(layer, path);
}

/** The same for one layer. */
export function placeIn({ place, origin }: ConfigurationLayer, path: FieldPath): string {
  if (origin === undefined) return place;
  const { line, column } = origin.locate(path);
  return `${place}:${line}:${column}`;
}

/** A problem in upstream's words, prefixed with the place that sets its field. */
export function placed(problem: string, layers: readonly ConfigurationLayer[]): string {
  for (const path of namedFields(problem)) {
    const place = placeOfField(layers, path);
    if (place !== undefined) return `${place}: ${problem}`;
  }
  return problem;
}

/** Only the first of the words that may be fields is taken; `(--flag)` stands for its field. */
function* namedFields(problem: string): Iterable<FieldPath> {
  const text = problem.replace(/^invalid configuration: /u, "");
  for (const [index, [word]] of [...text.matchAll(/(?:--)?[A-Za-z][\w.-]*/gu)].entries()) {
    const field = word.startsWith("--") ? configurationFlags.get(word.slice(2))?.field : word;
    if (field === undefined || (index > 0 && !/[A-Z.]/u.test(field))) continue;
    yield field.split(".").map((part) => part.replace(/^[A-Z](?![A-Z])/u, (letter) => letter.toLowerCase()));
  }
}

function has(values: JsonMap, path: FieldPath): boolean {
  let value: unknown = values;
  for (const part of path) {
    if (!isJsonMap(value) || !Object.hasOwn(value, part)) return false;
    value = value[part];
  }
  return path.length > 0 && value !== undefined;
}
