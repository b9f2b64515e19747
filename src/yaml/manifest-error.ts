import { ExitCode, PodwrightError } from "../base/errors.ts";

/** The path of a field from the manifest's root: `["spec", "containers", 1, "image"]`. */
export type FieldPath = readonly (string | number)[];

/** A position in a text; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** The source of an object, so that later errors can name file and line. */
export interface Origin {
  /** Path or URL, or `<standard input>`. */
  readonly file: string;
  /** `metadata.name` as written; undefined if there is none. */
  readonly name?: string | undefined;
  /** Its kind as written; undefined if there is none. */
  readonly kind?: string | undefined;
  /** The position of a field, or of its nearest existing parent. */
  locate(path: FieldPath): Position;
}

interface Where {
  readonly file: string;
  readonly position?: Position | undefined;
  readonly field?: string | undefined;
  readonly path?: FieldPath;
  readonly object?: string | undefined;
  readonly kind?: string | undefined;
}

/**
 * One problem of a manifest. The message starts with the position (`pod.yaml:7:12: spec.containers[0].image: …`) and
 * never contains values of environment variables or Secrets.
 */
export class ManifestError extends PodwrightError {
  readonly file: string;
  readonly position: Position | undefined;
  /** `spec.containers[1].image`; undefined for a problem of the whole file or document. */
  readonly field: string | undefined;
  /** The same as a path; empty if unknown. */
  readonly path: FieldPath;
  /** `metadata.name` of the object; undefined if unknown. */
  readonly object: string | undefined;
  /** `kind` of the object as written; undefined if unknown. */
  readonly kind: string | undefined;
  /** The problem without its position. */
  readonly detail: string;

  constructor(where: Where, detail: string) {
    const place = where.position === undefined ? "" : `:${where.position.line}:${where.position.column}`;
    const field = where.field === undefined ? "" : `${where.field}: `;
    super(ExitCode.badInput, `${printable(where.file)}${place}: ${field}${detail}`);
    this.name = "ManifestError";
    this.file = where.file;
    this.position = where.position;
    this.field = where.field;
    this.path = where.path ?? [];
    this.object = where.object;
    this.kind = where.kind;
    this.detail = detail;
  }

  /** The error of one field of an object. */
  static at(
    origin: Pick<Origin, "file" | "name" | "kind"> & { locate(path: FieldPath): Position | undefined },
    path: FieldPath,
    detail: string,
  ): ManifestError {
    const field = path.length === 0 ? undefined : formatPath(path);
    const { file, name: object, kind } = origin;
    return new ManifestError({ file, position: origin.locate(path), field, path, object, kind }, detail);
  }
}

const plainKey = /^[A-Za-z_][A-Za-z0-9_-]{0,79}$/;

/** `spec.containers[1].image`; keys that are not plain words are in brackets: `metadata.labels[a.b/c]`. */
export function formatPath(path: FieldPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (!plainKey.test(part)) text += `[${printable(part)}]`;
    else text += text === "" ? part : `.${part}`;
  }
  return text;
}

const maxQuotedLength = 80;
// Control characters, and those that change the text direction or are invisible.
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu;

/** Manifest text made safe for a terminal: control characters escaped, truncated. */
export function printable(text: string): string {
  const cut = text.length > maxQuotedLength ? `${text.slice(0, maxQuotedLength)}…` : text;
  return cut.replaceAll(unprintable, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** {@link printable} in double quotes. */
export function quote(text: string): string {
  return `"${printable(text.replaceAll('"', '\\"'))}"`;
}
