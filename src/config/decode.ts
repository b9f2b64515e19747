import { ZodError } from "zod";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { goValues } from "../yaml/go-values.ts";
import { ManifestError, quote, type FieldPath, type Origin } from "../yaml/manifest-error.ts";
import { describeSchemaErrors, typeName } from "../sources/schema-errors.ts";
import { parseDocuments } from "../yaml/documents.ts";
import { fieldHint } from "./field-hint.ts";
import { isJsonMap, withoutPath, type JsonMap } from "./json.ts";
import { kubeletConfigurationSchema, type PartialConfiguration } from "./schema.ts";

const apiVersion = "kubelet.config.k8s.io/v1beta1";
const kind = "KubeletConfiguration";

/** One file's configuration. */
export interface DecodedConfiguration {
  readonly configuration: PartialConfiguration;
  /** With its nulls: a merge patch (RFC 7386) for the preceding layers. */
  readonly patch: JsonMap;
  /** Problems that strict decoding would reject: unknown and duplicate fields. */
  readonly warnings: readonly string[];
  readonly origin: Origin;
  /** Fields of wrong types, which the configuration lacks. */
  readonly errors: readonly ManifestError[];
}

/**
 * Decodes a KubeletConfiguration from YAML or JSON. Unknown and duplicate fields are warnings, because upstream falls
 * back to lenient decoding for v1beta1; wrong types are errors, returned together with file, line and field.
 * @throws PodwrightError (bad input) for a file that is no KubeletConfiguration
 */
export function decodeConfiguration(bytes: Uint8Array, file: string): DecodedConfiguration {
  const warnings: string[] = [];
  const { value, origin } = onlyDocument(bytes, file, warnings);
  checkType(value, origin);
  const given = withoutType(value);
  const stripped = goValues(kubeletConfigurationSchema, given);
  const patch = goValues(kubeletConfigurationSchema, given, { keepNulls: true }) as JsonMap;
  const result = kubeletConfigurationSchema.safeParse(stripped);
  if (result.success) return { configuration: result.data, patch, warnings, origin, errors: [] };

  const { issues } = result.error;
  const describe = (some: typeof issues): ManifestError[] => {
    const errors = describeSchemaErrors(kubeletConfigurationSchema, stripped, new ZodError(some), fieldHint);
    return inOrder(errors.map(({ path, detail }) => ManifestError.at(origin, path, detail)));
  };
  const wrong = issues.filter((issue) => issue.code !== "unrecognized_keys");
  const unknown = issues.filter((issue) => issue.code === "unrecognized_keys");
  warnings.push(...describe(unknown).map((error) => error.message));
  const paths = unknown.flatMap((issue) => issue.keys.map((key) => [...issue.path.map(String), key]));
  // Unknown fields of list items stay; readers ignore them.
  const known = [...paths, ...wrong.map(({ path }) => aboveList(path))].reduce(withoutPath, patch);
  const configuration = lenient(goValues(kubeletConfigurationSchema, known));
  return { configuration, patch: known, warnings, origin, errors: describe(wrong) };
}

/** The path of a field, or of the list that it is in. */
function aboveList(path: readonly PropertyKey[]): string[] {
  const index = path.findIndex((part) => typeof part === "number");
  return (index < 0 ? path : path.slice(0, index)).map(String);
}

/** Expects a value that matches the schema except for unknown fields. */
function lenient(value: unknown): PartialConfiguration {
  return value as PartialConfiguration;
}

function inOrder(errors: readonly ManifestError[]): ManifestError[] {
  return errors.toSorted((a, b) => (a.position?.line ?? 0) - (b.position?.line ?? 0));
}

function onlyDocument(bytes: Uint8Array, file: string, warnings: string[]): { value: JsonMap; origin: Origin } {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new PodwrightError(ExitCode.badInput, `${file}: is not UTF-8 text`, { cause: error });
  }
  const warn = (problem: ManifestError): void => void warnings.push(problem.message);
  const { documents, errors } = parseDocuments(text, file, { onRepeatedKey: warn, onLaterError: warn });
  if (errors.length > 0) throw badInput(errors);
  const [document, ...others] = documents;
  // A truncated file must not mean the defaults.
  if (document === undefined) {
    throw new PodwrightError(ExitCode.badInput, `kubelet config file ${quote(file)} was empty`);
  }
  const { value, origin } = document;
  if (others.length > 0) warnings.push(`${file}: only the first of its ${documents.length} documents is used`);
  if (isJsonMap(value)) return { value, origin };
  throw ManifestError.at(origin, [], `expected a ${kind} (a map), got ${typeName(value)}`);
}

function checkType(value: JsonMap, origin: Origin): void {
  const expected = { apiVersion, kind } as const;
  for (const field of ["apiVersion", "kind"] as const) {
    const given = value[field];
    if (given === expected[field]) continue;
    const path: FieldPath = [field];
    if (given === undefined || given === null) {
      throw ManifestError.at(origin, path, `Required value: ${quote(expected[field])}`);
    }
    const shown = typeof given === "string" ? quote(given) : typeName(given);
    throw ManifestError.at(origin, path, `Unsupported value: ${shown}: supported values: ${quote(expected[field])}`);
  }
}

function withoutType(value: JsonMap): JsonMap {
  const { apiVersion: _apiVersion, kind: _kind, ...fields } = value;
  return fields;
}

function badInput(errors: readonly ManifestError[]): PodwrightError {
  return new PodwrightError(ExitCode.badInput, errors.map((error) => error.message).join("\n"));
}
