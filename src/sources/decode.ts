import type { z } from "zod";
import { ConfigMapManifest, PodManifest, SecretManifest } from "../api/pod.ts";
import {
  ClaimManifest,
  ClassManifest,
  DriverManifest,
  type StorageManifest,
  VolumeManifest,
} from "../api/storage-manifest.ts";
import { goValues } from "../yaml/go-values.ts";
import { podFieldHint } from "./look-alikes.ts";
import { ManifestError, quote, type FieldPath, type Origin } from "../yaml/manifest-error.ts";
import { describeSchemaErrors, type SchemaError, typeName, valueAt } from "./schema-errors.ts";
import { withoutUnknownFields } from "./unknown-fields.ts";
import { didYouMean } from "../base/did-you-mean.ts";
import { parseDocuments } from "../yaml/documents.ts";

/** The longest manifest file, as upstream has it (pkg/kubelet/config, maxConfigLength). */
export const maxManifestBytes = 10 * 1024 * 1024;

/** A manifest with the right fields and types. It has no defaults yet and is not validated. */
export type DecodedManifest =
  | { readonly kind: "Pod"; readonly manifest: PodManifest; readonly origin: Origin }
  | { readonly kind: "ConfigMap"; readonly manifest: ConfigMapManifest; readonly origin: Origin }
  | { readonly kind: "Secret"; readonly manifest: SecretManifest; readonly origin: Origin }
  | { readonly kind: StorageManifest["kind"]; readonly manifest: StorageManifest; readonly origin: Origin };

export type DecodedPod = Extract<DecodedManifest, { kind: "Pod" }>;

/** An object with unknown fields, without these: only for further checks. */
export interface FlawedManifest {
  readonly object: DecodedManifest;
  readonly unknown: readonly SchemaError[];
}

export interface DecodeResult {
  /** In the order of the text. */
  readonly objects: readonly DecodedManifest[];
  /** Their unknown fields are among the errors. */
  readonly flawed: readonly FlawedManifest[];
  /** Everything that is wrong with the text, not only the first. */
  readonly errors: readonly ManifestError[];
}

/** What a text yields, while it is read. */
interface Decoded {
  readonly objects: DecodedManifest[];
  readonly flawed: FlawedManifest[];
  readonly errors: ManifestError[];
}

/**
 * Reads the manifests of a file: YAML (several documents) or JSON, with Lists unfolded. An object that has errors is
 * left out and the others are given.
 * @param file path or URL, for messages
 */
export function decodeManifests(bytes: Uint8Array, file: string): DecodeResult {
  const text = decodeText(bytes, file);
  if (text instanceof ManifestError) return { objects: [], flawed: [], errors: [text] };
  const { documents, errors } = parseDocuments(text, file);
  const decoded: Decoded = { objects: [], flawed: [], errors };
  for (const document of documents) decodeObject(document.value, document.origin, undefined, decoded);
  return { ...decoded, errors: inOrder(errors, file) };
}

/** As many errors of one file as a person can use. */
const maxErrors = 50;

function inOrder(errors: readonly ManifestError[], file: string): ManifestError[] {
  const sorted = errors.toSorted((a, b) => (a.position?.line ?? 0) - (b.position?.line ?? 0));
  if (sorted.length <= maxErrors) return sorted;
  const rest = new ManifestError({ file }, `and ${sorted.length - maxErrors} more errors`);
  return [...sorted.slice(0, maxErrors), rest];
}

function decodeText(bytes: Uint8Array, file: string): string | ManifestError {
  if (bytes.length > maxManifestBytes) return tooBig(file);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const lossy = new TextDecoder("utf-8").decode(bytes);
    const where = { file, position: positionIn(lossy, Math.max(0, lossy.indexOf("\ufffd"))) };
    const utf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
    return new ManifestError(where, utf16 ? "is UTF-16 text; save it as UTF-8" : "is not UTF-8 text");
  }
}

/** The error of a file that is longer than {@link maxManifestBytes}. */
export function tooBig(file: string): ManifestError {
  return new ManifestError({ file }, `is longer than ${maxManifestBytes / 1024 / 1024} MiB: too big for a manifest`);
}

function positionIn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}

/** By kind: its apiVersion. */
const apiVersions: Readonly<Record<DecodedManifest["kind"], string>> = {
  Pod: "v1",
  ConfigMap: "v1",
  Secret: "v1",
  PersistentVolumeClaim: "v1",
  PersistentVolume: "v1",
  StorageClass: "storage.k8s.io/v1",
  CSIDriver: "storage.k8s.io/v1",
};
const objectKinds: readonly string[] = Object.keys(apiVersions);
const itemKinds: Readonly<Record<string, string | undefined>> = {
  List: undefined,
  PodList: "Pod",
  ConfigMapList: "ConfigMap",
  SecretList: "Secret",
  PersistentVolumeClaimList: "PersistentVolumeClaim",
  PersistentVolumeList: "PersistentVolume",
  StorageClassList: "StorageClass",
  CSIDriverList: "CSIDriver",
};
const takenKinds = "Pod, ConfigMap, Secret, PersistentVolumeClaim, PersistentVolume, StorageClass, CSIDriver";
/** Kinds that hold a pod template: what people most often give by mistake. */
const controllers = new Set([
  "Deployment",
  "DaemonSet",
  "StatefulSet",
  "ReplicaSet",
  "ReplicationController",
  "Job",
  "CronJob",
]);

/** @param impliedKind kind of the items of a typed list, which need not say it */
function decodeObject(value: unknown, place: Origin, impliedKind: string | undefined, into: Decoded): void {
  const { errors } = into;
  const origin: Origin = {
    file: place.file,
    name: textIn(value, ["metadata", "name"]),
    kind: textIn(value, ["kind"]) ?? impliedKind,
    locate: (path) => place.locate(path),
  };
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    errors.push(
      ManifestError.at(origin, [], `expected a manifest (a map with apiVersion and kind), got ${typeName(value)}`),
    );
    return;
  }
  const typed: { apiVersion?: unknown; kind?: unknown; items?: unknown } =
    impliedKind === undefined ? value : { apiVersion: versionOf(impliedKind), kind: impliedKind, ...value };
  const problem = typeProblem(typed);
  if (problem !== undefined) {
    errors.push(ManifestError.at(origin, problem.path, problem.detail));
    return;
  }
  const kind = String(typed.kind);
  if (Object.hasOwn(itemKinds, kind)) {
    decodeList(typed.items, origin, itemKinds[kind], into);
    return;
  }
  const { object, unknown = [], errors: found = [] } = parseObject(kind as DecodedManifest["kind"], typed, origin);
  errors.push(...found);
  if (object === undefined) return;
  if (found.length === 0) into.objects.push(object);
  else into.flawed.push({ object, unknown });
}

function textIn(value: unknown, path: FieldPath): string | undefined {
  const text = valueAt(value, path);
  return typeof text === "string" && text !== "" ? text : undefined;
}

/** With errors, the object is what remains without its unknown fields; undefined: it cannot be read. */
type Parsed = { readonly object: DecodedManifest | undefined; readonly errors?: readonly ManifestError[] } & Partial<
  Pick<FlawedManifest, "unknown">
>;

function parseObject(kind: DecodedManifest["kind"], value: object, origin: Origin): Parsed {
  switch (kind) {
    case "Pod":
      return parseAs(PodManifest, value, origin, (manifest) => ({ kind, manifest, origin }));
    case "ConfigMap":
      return parseAs(ConfigMapManifest, value, origin, (manifest) => ({ kind, manifest, origin }));
    case "Secret":
      return parseAs(SecretManifest, value, origin, (manifest) => ({ kind, manifest, origin }));
    case "PersistentVolumeClaim":
      return parseAs(ClaimManifest, value, origin, (manifest) => ({ kind, manifest, origin }));
    case "PersistentVolume":
      return parseAs(VolumeManifest, value, origin, (manifest) => ({ kind, manifest, origin }));
    case "StorageClass":
      return parseAs(ClassManifest, value, origin, (manifest) => ({ kind, manifest, origin }));
    case "CSIDriver":
      return parseAs(DriverManifest, value, origin, (manifest) => ({ kind, manifest, origin }));
  }
}

function parseAs<M>(
  schema: z.ZodType<M>,
  value: object,
  origin: Origin,
  wrap: (manifest: M) => DecodedManifest,
): Parsed {
  const decoded = goValues(schema, value);
  const result = schema.safeParse(decoded);
  if (result.success) return { object: wrap(result.data) };
  const unknown = describeSchemaErrors(schema, decoded, result.error, podFieldHint);
  const errors = unknown.map(({ path, detail }) => ManifestError.at(origin, path, detail));
  const rest = schema.safeParse(withoutUnknownFields(decoded, result.error));
  return { object: rest.success ? wrap(rest.data) : undefined, unknown, errors };
}

function decodeList(items: unknown, origin: Origin, itemKind: string | undefined, into: Decoded): void {
  if (items !== undefined && items !== null && !Array.isArray(items)) {
    into.errors.push(ManifestError.at(origin, ["items"], `expected a list, got ${typeName(items)}`));
    return;
  }
  for (const [index, item] of (items ?? []).entries()) {
    const itemOrigin: Origin = {
      file: origin.file,
      locate: (path) => origin.locate(["items", index, ...path]),
    };
    decodeObject(item, itemOrigin, itemKind, into);
  }
}

/** What is wrong with apiVersion and kind. */
function typeProblem(value: { apiVersion?: unknown; kind?: unknown }): { path: FieldPath; detail: string } | undefined {
  const { apiVersion, kind } = value;
  if (kind === undefined || kind === null) return { path: ["kind"], detail: 'Required value: for example "Pod"' };
  if (typeof kind !== "string") return { path: ["kind"], detail: `expected a string, got ${typeName(kind)}` };
  if (!objectKinds.includes(kind) && !Object.hasOwn(itemKinds, kind)) {
    return { path: ["kind"], detail: unknownKind(kind) };
  }
  const version = versionOf(kind);
  if (apiVersion === undefined || apiVersion === null) {
    return { path: ["apiVersion"], detail: `Required value: ${quote(version)} for kind ${kind}` };
  }
  if (typeof apiVersion !== "string") {
    return { path: ["apiVersion"], detail: `expected a string, got ${typeName(apiVersion)}` };
  }
  if (apiVersion === version) return undefined;
  return {
    path: ["apiVersion"],
    detail: `Unsupported value: ${quote(apiVersion)}: the apiVersion of kind ${kind} is ${quote(version)}`,
  };
}

function versionOf(kind: string): string {
  return (apiVersions as Readonly<Record<string, string>>)[itemKinds[kind] ?? kind] ?? "v1";
}

function unknownKind(kind: string): string {
  if (controllers.has(kind)) {
    return `Unsupported value: ${quote(kind)}: podwright runs pods; write its spec.template as a manifest of kind Pod`;
  }
  const meant = didYouMean(kind, [...objectKinds, ...Object.keys(itemKinds)]);
  const hint = meant === undefined ? "" : `; did you mean ${quote(meant)}?`;
  return `Unsupported value: ${quote(kind)}: podwright accepts ${takenKinds} and Lists of them${hint}`;
}
