import {
  type ClaimManifest,
  ClaimSpec,
  type ClassManifest,
  type DriverManifest,
  foreignVolumeSources,
  type VolumeManifest,
} from "../api/storage-manifest.ts";
import type { ObjectMeta } from "../api/meta.ts";
import type { PodManifest } from "../api/pod.ts";
import { dnsSubdomainProblem } from "../base/formats.ts";
import { parseQuantity, QuantityError } from "../resources/quantity.ts";
import { goValues } from "../yaml/go-values.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { forbidden, invalid, notSupported, required, type FieldError } from "./field-errors.ts";
import { describeSchemaErrors } from "./schema-errors.ts";
import { validateNodeSelector } from "./validate-affinity.ts";
import { validateMetadata } from "./validate-metadata.ts";
import { validateLabelSelector } from "./validate-selector.ts";
import { validateDriverName, validateHostPath, validateNfs } from "./validate-volumes.ts";

const accessModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const reclaimPolicies = ["Delete", "Recycle", "Retain"];
/** A class of volumes that are created manually. */
export const noProvisioner = "kubernetes.io/no-provisioner";

/** Checks a claim (upstream: ValidatePersistentVolumeClaim). */
export function* validateClaim({ metadata, spec }: ClaimManifest): Iterable<FieldError> {
  yield* validateMetadata(metadata);
  yield* validateClaimSpec(spec, ["spec"]);
}

function* validateClaimSpec(spec: ClaimSpec, path: FieldPath): Iterable<FieldError> {
  if (spec.accessModes?.[0] === undefined) {
    yield required([...path, "accessModes"], "at least 1 access mode is required");
  }
  yield* validateAccessModes(spec.accessModes ?? [], [...path, "accessModes"]);
  yield* validateLabelSelector(spec.selector, [...path, "selector"]);
  const storage = spec.resources?.requests?.["storage"];
  const ofStorage = [...path, "resources", "requests", "storage"];
  if (storage === undefined) yield required(ofStorage);
  else yield* validateSize(storage, ofStorage);
  yield* validateClassName(spec.storageClassName, [...path, "storageClassName"]);
  if (spec.volumeName !== undefined) {
    const problem = dnsSubdomainProblem(spec.volumeName);
    if (problem !== undefined) yield invalid([...path, "volumeName"], spec.volumeName, problem);
  }
  yield* refuseBlock(spec.volumeMode, path);
  for (const field of ["dataSource", "dataSourceRef"] as const) {
    if (spec[field] !== undefined && spec[field] !== null) {
      yield { path: [...path, field], detail: "not supported: podwright does not populate volumes" };
    }
  }
}

/** Checks a volume (upstream: ValidatePersistentVolume), as far as this node mounts it. */
export function* validatePersistentVolume({ metadata, spec }: VolumeManifest): Iterable<FieldError> {
  yield* validateMetadata(metadata);
  yield* refuseNamespace(metadata);
  const path = ["spec"];
  if (spec.accessModes?.[0] === undefined) yield required([...path, "accessModes"]);
  yield* validateAccessModes(spec.accessModes ?? [], [...path, "accessModes"]);
  yield* validateCapacity(spec.capacity ?? {}, [...path, "capacity"]);
  yield* validateClassName(spec.storageClassName, [...path, "storageClassName"]);
  const { persistentVolumeReclaimPolicy: policy } = spec;
  if (policy !== undefined && !reclaimPolicies.includes(policy)) {
    yield notSupported([...path, "persistentVolumeReclaimPolicy"], policy, reclaimPolicies);
  }
  yield* refuseBlock(spec.volumeMode, path);
  if (spec.nodeAffinity !== undefined) {
    const { required: nodes } = spec.nodeAffinity;
    const here = [...path, "nodeAffinity", "required"];
    if (nodes === undefined) yield required(here, "must specify required node constraints");
    else yield* validateNodeSelector(nodes, here);
  }
  yield* validateVolumeSource(spec, path);
}

function* validateVolumeSource(spec: VolumeManifest["spec"], path: FieldPath): Iterable<FieldError> {
  const sources = (["hostPath", "local", "nfs", "csi", ...foreignVolumeSources] as const).filter((source) => {
    return spec[source] !== undefined && spec[source] !== null;
  });
  if (sources.length === 0) yield required(path, "must specify a volume type");
  for (const second of sources.slice(1)) {
    yield forbidden([...path, second], "may not specify more than 1 volume type");
  }
  const [source] = sources;
  if (source !== undefined && !["hostPath", "local", "nfs", "csi"].includes(source)) {
    const detail = "not supported: podwright run binds claims to volumes of type hostPath, local, nfs and csi";
    yield { path: [...path, source], detail };
  }
  if (spec.hostPath !== undefined) yield* validateHostPath(spec.hostPath, [...path, "hostPath"]);
  if (spec.csi !== undefined) {
    yield* validateDriverName(spec.csi.driver, [...path, "csi", "driver"]);
    if (spec.csi.volumeHandle === "") yield required([...path, "csi", "volumeHandle"]);
  }
  if (spec.nfs !== undefined) yield* validateNfs(spec.nfs, [...path, "nfs"]);
  if (spec.local !== undefined) yield* validateHostPath({ path: spec.local.path }, [...path, "local"]);
}

/** Checks a class (upstream: ValidateStorageClass): nothing here provisions volumes. */
export function* validateStorageClass(object: ClassManifest): Iterable<FieldError> {
  const { metadata, provisioner, volumeBindingMode: mode, reclaimPolicy } = object;
  yield* validateMetadata(metadata);
  yield* refuseNamespace(metadata);
  if (provisioner === "") yield required(["provisioner"]);
  else if (provisioner !== noProvisioner) {
    const remedy = "omit the StorageClass: its claims are bound to directories";
    yield {
      path: ["provisioner"],
      detail: `not supported: podwright does not provision volumes, so the provisioner must be ${noProvisioner}; ${remedy}`,
    };
  }
  const modes = ["Immediate", "WaitForFirstConsumer"];
  if (mode !== undefined && !modes.includes(mode)) yield notSupported(["volumeBindingMode"], mode, modes);
  const policies = ["Delete", "Retain"];
  if (reclaimPolicy !== undefined && !policies.includes(reclaimPolicy)) {
    yield notSupported(["reclaimPolicy"], reclaimPolicy, policies);
  }
}

/** Validates a CSIDriver (upstream: ValidateCSIDriver): here nothing attaches its volumes or issues tokens for it. */
export function* validateDriver({ metadata, spec }: DriverManifest): Iterable<FieldError> {
  // The name has a check of its own.
  yield* validateMetadata({ ...metadata, ...(metadata.name && { name: "d" }) });
  if (metadata.name) yield* validateDriverName(metadata.name, ["metadata", "name"]);
  yield* refuseNamespace(metadata);
  if (spec.attachRequired !== false) {
    yield {
      path: ["spec", "attachRequired"],
      detail: "not supported: podwright run does not attach volumes; set it to false if the driver works without",
    };
  }
  if (spec.tokenRequests?.[0] !== undefined) {
    yield { path: ["spec", "tokenRequests"], detail: "not supported: podwright needs an API server for tokens" };
  }
}

/** Checks the templates of a pod's generic ephemeral volumes (upstream: ValidatePersistentVolumeClaimTemplate). */
export function* validateClaimTemplates({ metadata, spec }: PodManifest): Iterable<FieldError> {
  for (const [index, { name, ephemeral }] of (spec.volumes ?? []).entries()) {
    if (ephemeral === undefined) continue;
    const path = ["spec", "volumes", index, "ephemeral", "volumeClaimTemplate"];
    const template = ephemeral.volumeClaimTemplate;
    if (template === undefined) {
      yield required(path);
      continue;
    }
    const decoded = goValues(ClaimSpec, template.spec);
    const parsed = ClaimSpec.safeParse(decoded);
    if (parsed.success) {
      yield* validateClaimSpec(parsed.data, [...path, "spec"]);
    } else {
      for (const error of describeSchemaErrors(ClaimSpec, decoded, parsed.error)) {
        yield { path: [...path, "spec", ...error.path], detail: error.detail };
      }
    }
    const claim = `${metadata.name ?? ""}-${name}`;
    const problem = dnsSubdomainProblem(claim);
    const at = ["spec", "volumes", index, "name"];
    if (problem !== undefined) yield invalid(at, name, `PVC name "${claim}": ${problem}`);
  }
}

function* validateAccessModes(modes: readonly string[], path: FieldPath): Iterable<FieldError> {
  for (const mode of modes) if (!accessModes.includes(mode)) yield notSupported(path, mode, accessModes);
  if (modes.length > 1 && modes.includes("ReadWriteOncePod")) {
    yield forbidden(path, "may not use ReadWriteOncePod with other access modes");
  }
}

function* validateCapacity(
  capacity: NonNullable<VolumeManifest["spec"]["capacity"]>,
  path: FieldPath,
): Iterable<FieldError> {
  if (Object.keys(capacity).length === 0) yield required(path);
  else if (Object.keys(capacity).length > 1 || capacity["storage"] === undefined) {
    yield notSupported(path, Object.keys(capacity).join(", "), ["storage"]);
  } else yield* validateSize(capacity["storage"], [...path, "storage"]);
}

function* validateSize(size: string | number, path: FieldPath): Iterable<FieldError> {
  try {
    if (parseQuantity(size).nanos <= 0n) yield invalid(path, size, "must be greater than zero");
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    yield invalid(path, size, error.message);
  }
}

function* validateClassName(name: string | undefined, path: FieldPath): Iterable<FieldError> {
  const problem = name === undefined || name === "" ? undefined : dnsSubdomainProblem(name);
  if (problem !== undefined) yield invalid(path, name ?? "", problem);
}

function* refuseNamespace({ namespace }: ObjectMeta): Iterable<FieldError> {
  if (namespace !== undefined) yield forbidden(["metadata", "namespace"], "not allowed on this type");
}

function* refuseBlock(mode: string | undefined, path: FieldPath): Iterable<FieldError> {
  if (mode !== "Block") return;
  yield { path: [...path, "volumeMode"], detail: "not supported: podwright run does not bind claims to block volumes" };
}
