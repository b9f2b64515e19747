import type { PodSpec } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { parseQuantity, QuantityError } from "../resources/quantity.ts";
import { duplicate, forbidden, invalid, notSupported, required, type FieldError } from "./field-errors.ts";
import { dnsLabelProblem, driverNameProblem, localPathProblem } from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateFieldRef, validateResourceFieldRef } from "./validate-downward.ts";

/** Checks the volumes of a pod (upstream: ValidateVolumes), as far as this node mounts them. */
export function* validateVolumes(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  const names = new Set<string>();
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    const here = [...path, index];
    const problem = dnsLabelProblem(volume.name);
    if (volume.name === "") yield required([...here, "name"]);
    else if (problem !== undefined) yield invalid([...here, "name"], volume.name, problem);
    else if (names.has(volume.name)) yield duplicate([...here, "name"], volume.name);
    names.add(volume.name);
    const sources = Object.keys(volume).filter((key) => key !== "name");
    const [, second] = sources;
    if (sources.length === 0) yield required(here, "must specify a volume type");
    if (second !== undefined) yield forbidden([...here, second], "may not specify more than 1 volume type");
    yield* validateSource(volume, here);
  }
}

function* validateSource(volume: Volume, path: FieldPath): Iterable<FieldError> {
  const { emptyDir, hostPath, configMap, secret, downwardAPI, projected, persistentVolumeClaim: claim } = volume;
  if (emptyDir !== undefined) yield* validateEmptyDir(emptyDir, [...path, "emptyDir"]);
  if (hostPath !== undefined) yield* validateHostPath(hostPath, [...path, "hostPath"]);
  if (configMap !== undefined) {
    const here = [...path, "configMap"];
    if (!configMap.name) yield required([...here, "name"]);
    yield* validateMode(configMap.defaultMode, [...here, "defaultMode"]);
    yield* validateItems(configMap.items, [...here, "items"]);
  }
  if (secret !== undefined) {
    const here = [...path, "secret"];
    if (!secret.secretName) yield required([...here, "secretName"]);
    yield* validateMode(secret.defaultMode, [...here, "defaultMode"]);
    yield* validateItems(secret.items, [...here, "items"]);
  }
  if (downwardAPI !== undefined) {
    yield* validateMode(downwardAPI.defaultMode, [...path, "downwardAPI", "defaultMode"]);
    yield* validateDownward(downwardAPI.items, [...path, "downwardAPI", "items"]);
  }
  if (projected !== undefined) yield* validateProjected(projected, [...path, "projected"]);
  if (volume.csi !== undefined) yield* validateCsi(volume.csi, [...path, "csi"]);
  if (volume.nfs !== undefined) yield* validateNfs(volume.nfs, [...path, "nfs"]);
  if (volume.image !== undefined) yield* validateImageVolume(volume.image, [...path, "image"]);
  if (claim?.claimName === "") yield required([...path, "persistentVolumeClaim", "claimName"]);
}

const pullPolicies = ["Always", "IfNotPresent", "Never"];

function* validateImageVolume(
  { reference, pullPolicy = "" }: NonNullable<Volume["image"]>,
  path: FieldPath,
): Iterable<FieldError> {
  if (!reference) yield required([...path, "reference"]);
  if (pullPolicy !== "" && !pullPolicies.includes(pullPolicy)) {
    yield notSupported([...path, "pullPolicy"], pullPolicy, pullPolicies);
  }
}

function* validateEmptyDir(source: NonNullable<Volume["emptyDir"]>, path: FieldPath): Iterable<FieldError> {
  const { medium = "", sizeLimit } = source;
  if (!/^(?:|Memory|HugePages(?:-.+)?)$/u.test(medium)) {
    yield notSupported([...path, "medium"], medium, ["", "Memory", "HugePages", "HugePages-<size>"]);
  }
  if (sizeLimit === undefined) return;
  try {
    if (parseQuantity(sizeLimit).value() < 0n) {
      yield invalid([...path, "sizeLimit"], sizeLimit, "must be greater than or equal to 0");
    }
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    yield invalid([...path, "sizeLimit"], sizeLimit, error.message);
  }
}

function* validateCsi(source: NonNullable<Volume["csi"]>, path: FieldPath): Iterable<FieldError> {
  yield* validateDriverName(source.driver, [...path, "driver"]);
  const { nodePublishSecretRef: secret } = source;
  if (secret !== undefined && !secret.name) yield required([...path, "nodePublishSecretRef", "name"]);
}

/** Checks the name of a CSI driver (upstream: ValidateCSIDriverName). */
export function* validateDriverName(name: string, path: FieldPath): Iterable<FieldError> {
  const problem = driverNameProblem(name);
  if (name === "") yield required(path);
  else if (problem !== undefined) yield invalid(path, name, problem);
}

export function* validateNfs(
  { server, path: place }: NonNullable<Volume["nfs"]>,
  path: FieldPath,
): Iterable<FieldError> {
  if (server === "") yield required([...path, "server"]);
  if (place === "") yield required([...path, "path"]);
  else if (!place.startsWith("/")) yield invalid([...path, "path"], place, "must be an absolute path");
}

const hostPathTypes = [
  "",
  "DirectoryOrCreate",
  "Directory",
  "FileOrCreate",
  "File",
  "Socket",
  "CharDevice",
  "BlockDevice",
];

export function* validateHostPath(source: NonNullable<Volume["hostPath"]>, path: FieldPath): Iterable<FieldError> {
  const here = [...path, "path"];
  if (source.path === "") yield required(here);
  else if (source.path.split("/").includes("..")) yield invalid(here, source.path, "must not contain '..'");
  else if (!source.path.startsWith("/")) yield invalid(here, source.path, "must be an absolute path");
  if (!hostPathTypes.includes(source.type ?? "")) {
    yield notSupported([...path, "type"], source.type ?? "", hostPathTypes);
  }
}

function* validateProjected(source: NonNullable<Volume["projected"]>, path: FieldPath): Iterable<FieldError> {
  yield* validateMode(source.defaultMode, [...path, "defaultMode"]);
  const taken = new Set<string>();
  for (const [index, projection] of (source.sources ?? []).entries()) {
    const here = [...path, "sources", index];
    const [, second] = Object.keys(projection);
    if (second !== undefined) yield forbidden([...here, second], "may not specify more than 1 volume type per source");
    for (const kind of ["configMap", "secret"] as const) {
      if (projection[kind] === undefined) continue;
      if (!projection[kind].name) yield required([...here, kind, "name"]);
      yield* validateItems(projection[kind].items, [...here, kind, "items"], taken);
    }
    yield* validateDownward(projection.downwardAPI?.items, [...here, "downwardAPI", "items"], taken);
  }
}

type Items = NonNullable<Volume["configMap"]>["items"];

/** @param taken paths of the files of the volume, where each of them may be given once */
function* validateItems(items: Items, path: FieldPath, taken?: Set<string>): Iterable<FieldError> {
  for (const [index, { key, path: file, mode }] of (items ?? []).entries()) {
    if (key === "") yield required([...path, index, "key"]);
    yield* validateFile(file, [...path, index, "path"], taken);
    yield* validateMode(mode, [...path, index, "mode"]);
  }
}

const downwardFields = new Set(
  ["name", "namespace", "uid", "labels", "annotations"].map((field) => `metadata.${field}`),
);

function* validateDownward(
  items: NonNullable<Volume["downwardAPI"]>["items"],
  path: FieldPath,
  taken?: Set<string>,
): Iterable<FieldError> {
  for (const [index, { path: file, fieldRef, resourceFieldRef, mode }] of (items ?? []).entries()) {
    const here = [...path, index];
    yield* validateFile(file, [...here, "path"], taken);
    yield* validateMode(mode, [...here, "mode"]);
    if (fieldRef !== undefined && resourceFieldRef !== undefined) {
      yield invalid(here, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
    } else if (fieldRef !== undefined) {
      yield* validateFieldRef(fieldRef, downwardFields, [...here, "fieldRef"]);
    } else if (resourceFieldRef === undefined) {
      yield required(here, "one of fieldRef and resourceFieldRef is required");
    } else yield* validateResourceFieldRef(resourceFieldRef, [...here, "resourceFieldRef"], true);
  }
}

/** A file's path in its volume. */
function* validateFile(file: string, path: FieldPath, taken: Set<string> | undefined): Iterable<FieldError> {
  const problem = localPathProblem(file);
  if (file === "") yield required(path);
  else if (problem !== undefined) yield invalid(path, file, problem);
  else if (file.startsWith("..")) yield invalid(path, file, "must not start with '..'");
  else if (taken?.has(file) === true) yield invalid(path, file, "conflicting duplicate paths");
  taken?.add(file);
}

function* validateMode(mode: number | undefined, path: FieldPath): Iterable<FieldError> {
  if (mode !== undefined && (mode < 0 || mode > 0o777)) {
    yield invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive");
  }
}
