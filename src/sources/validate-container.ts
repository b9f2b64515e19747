import type { Container, ContainerPort, EnvVar, ResourceRequirements } from "../api/container.ts";
import type { VolumeMount } from "../api/volume.ts";
import { pageSizeOf } from "../resources/huge-pages.ts";
import { readQuantity } from "../resources/quantity.ts";
import { duplicate, forbidden, invalid, notFound, notSupported, required, type FieldError } from "./field-errors.ts";
import {
  configKeyProblem,
  dnsLabelProblem,
  dnsSubdomainProblem,
  environmentNameProblem,
  isIpAddress,
  localPathProblem,
  portNameProblem,
  qualifiedNameProblem,
} from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateFieldRef, validateResourceFieldRef } from "./validate-downward.ts";
import { validateVolumeDevices } from "./validate-volume-devices.ts";

/** The pod's facts for the validation of a container. */
export interface PodContext {
  readonly volumeNames: ReadonlySet<string>;
  /** Those of them that are emptyDir volumes. */
  readonly emptyDirNames: ReadonlySet<string>;
  /** Those of them that are claims, generic ephemeral volumes included. */
  readonly claimNames: ReadonlySet<string>;
  readonly hostNetwork: boolean;
  readonly hostUsers: boolean;
}

/** Checks one container of any kind (upstream: validateContainerCommon). */
export function* validateContainer(container: Container, path: FieldPath, pod: PodContext): Iterable<FieldError> {
  yield* validateName(container.name, [...path, "name"]);
  yield* validateImage(container.image, [...path, "image"]);
  yield* validatePorts(container.ports ?? [], [...path, "ports"], pod.hostNetwork);
  yield* validateEnvironment(container, path, pod);
  if (container.resources) yield* validateResources(container.resources, [...path, "resources"]);
  yield* validateVolumeMounts(container, path, pod);
  yield* validateVolumeDevices(container, path, pod);
  yield* validateSecurity(container, path, pod);
}

function* validateName(name: string, path: FieldPath): Iterable<FieldError> {
  if (name === "") {
    yield required(path);
    return;
  }
  const problem = dnsLabelProblem(name);
  if (problem !== undefined) yield invalid(path, name, problem);
}

function* validateImage(image: string | undefined, path: FieldPath): Iterable<FieldError> {
  if (image === undefined || image === "") yield required(path);
  else if (image !== image.trim()) yield invalid(path, image, "must not have leading or trailing whitespace");
  else if (/\s/u.test(image)) yield invalid(path, image, "must not contain whitespace");
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65535;
}

const portRange = "must be between 1 and 65535, inclusive";

function* validatePorts(ports: readonly ContainerPort[], path: FieldPath, hostNetwork: boolean): Iterable<FieldError> {
  const names = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const here = [...path, index];
    if (port.name !== undefined && port.name !== "") {
      const problem = portNameProblem(port.name);
      if (problem !== undefined) yield invalid([...here, "name"], port.name, problem);
      else if (names.has(port.name)) yield duplicate([...here, "name"], port.name);
      names.add(port.name);
    }
    if (port.containerPort === 0) yield required([...here, "containerPort"]);
    else if (!isPort(port.containerPort)) yield invalid([...here, "containerPort"], port.containerPort, portRange);
    if (port.hostPort !== undefined && port.hostPort !== 0) {
      if (!isPort(port.hostPort)) yield invalid([...here, "hostPort"], port.hostPort, portRange);
      else if (hostNetwork && port.hostPort !== port.containerPort) {
        yield invalid([...here, "hostPort"], port.hostPort, "must match `containerPort` when `hostNetwork` is true");
      }
    }
    if (port.hostIP !== undefined && port.hostIP !== "" && !isIpAddress(port.hostIP)) {
      yield invalid([...here, "hostIP"], port.hostIP, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
  }
}

function* validateEnvironment(container: Container, path: FieldPath, pod: PodContext): Iterable<FieldError> {
  for (const [index, variable] of (container.env ?? []).entries()) {
    const here = [...path, "env", index];
    const problem = environmentNameProblem(variable.name);
    if (variable.name === "") yield required([...here, "name"]);
    else if (problem !== undefined) yield invalid([...here, "name"], variable.name, problem);
    yield* validateValueFrom(variable, [...here, "valueFrom"]);
    yield* validateFileKey(variable.valueFrom?.fileKeyRef, [...here, "valueFrom", "fileKeyRef"], pod);
  }
  for (const [index, source] of (container.envFrom ?? []).entries()) {
    const here = [...path, "envFrom", index];
    if (source.prefix !== undefined && source.prefix !== "") {
      const problem = environmentNameProblem(source.prefix);
      if (problem !== undefined) yield invalid([...here, "prefix"], source.prefix, problem);
    }
    if (source.configMapRef && source.secretRef) {
      yield invalid(here, "", "may not have more than one field specified at a time");
    } else if (source.configMapRef) {
      yield* validateObjectName(source.configMapRef.name, [...here, "configMapRef", "name"]);
    } else if (!source.secretRef) yield invalid(here, "", "must specify one of: `configMapRef` or `secretRef`");
    else yield* validateObjectName(source.secretRef.name, [...here, "secretRef", "name"]);
  }
}

/** The name of a ConfigMap or Secret. */
function* validateObjectName(name: string | undefined, path: FieldPath): Iterable<FieldError> {
  if (!name) {
    yield required(path);
    return;
  }
  const problem = dnsSubdomainProblem(name);
  if (problem !== undefined) yield invalid(path, name, problem);
}

const sourceNames = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] as const;
const environmentFields = new Set([
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
]);

function* validateValueFrom(variable: EnvVar, path: FieldPath): Iterable<FieldError> {
  const source = variable.valueFrom;
  if (source === undefined) return;
  const given = sourceNames.filter((name) => source[name] !== undefined);
  if (given.length === 0) yield required(path, `must specify one of: ${sourceNames.map((n) => `\`${n}\``).join(", ")}`);
  if (given.length > 1) yield invalid(path, "", "may not have more than one field specified at a time");
  if (variable.value) yield invalid(path, "", "may not be specified when `value` is not empty");
  const { fieldRef, resourceFieldRef } = source;
  if (fieldRef) yield* validateFieldRef(fieldRef, environmentFields, [...path, "fieldRef"]);
  if (resourceFieldRef) yield* validateResourceFieldRef(resourceFieldRef, [...path, "resourceFieldRef"], false);
  for (const name of ["configMapKeyRef", "secretKeyRef"] as const) {
    const reference = source[name];
    if (reference === undefined) continue;
    yield* validateObjectName(reference.name, [...path, name, "name"]);
    const problem = configKeyProblem(reference.key);
    if (reference.key === "") yield required([...path, name, "key"]);
    else if (problem !== undefined) yield invalid([...path, name, "key"], reference.key, problem);
  }
}

/** A variable from a file (KEP-3721; upstream: validateFileKeySelector, validateFileKeyRefVolumes). */
function* validateFileKey(
  reference: NonNullable<EnvVar["valueFrom"]>["fileKeyRef"],
  path: FieldPath,
  pod: PodContext,
): Iterable<FieldError> {
  if (reference === undefined) return;
  const { key, volumeName, path: file } = reference;
  const problem = environmentNameProblem(key);
  if (key === "") yield required([...path, "key"]);
  else if (problem !== undefined) yield invalid([...path, "key"], key, problem);
  if (file === "") yield required([...path, "path"]);
  else if (file.split("/").includes("..")) yield invalid([...path, "path"], file, "must not contain '..'");
  const here = [...path, "volumeName"];
  if (volumeName === "") yield required(here);
  else if (!pod.volumeNames.has(volumeName)) yield notFound(here, volumeName);
  else if (!pod.emptyDirNames.has(volumeName)) {
    yield invalid(here, volumeName, "referenced volume must be of type emptyDir");
  }
}

function* quantityProblems(value: string | number, path: FieldPath): Iterable<FieldError> {
  const quantity = readQuantity(value);
  if (quantity === undefined) yield invalid(path, value, "must be a quantity like 2, 500m or 64Mi");
  else if (quantity.nanos < 0n) yield invalid(path, value, "must be greater than or equal to 0");
}

const nativeResources = new Set(["cpu", "memory", "ephemeral-storage"]);

/** Checks the resources of a container, or those of a whole pod. */
export function* validateResources(resources: ResourceRequirements, path: FieldPath): Iterable<FieldError> {
  for (const kind of ["limits", "requests"] as const) {
    for (const [name, value] of Object.entries(resources[kind] ?? {})) {
      const here = [...path, kind, name];
      const problem = resourceNameProblem(name);
      yield* quantityProblems(value, here);
      if (problem === undefined) yield* validatePages(name, value, here);
      else yield invalid(here, name, problem);
    }
  }
  for (const [name, value] of Object.entries(resources.requests ?? {})) {
    const limit = resources.limits?.[name];
    // Upstream's IsOvercommitAllowed.
    const overcommits = nativeResources.has(name) || name.includes("kubernetes.io/");
    const here = [...path, "requests", name];
    if (limit === undefined) {
      if (!overcommits && resourceNameProblem(name) === undefined) {
        yield required([...path, "limits", name], "must be given for this resource, equal to the request");
      }
      continue;
    }
    const [requested, limited] = [readQuantity(value), readQuantity(limit)];
    if (requested === undefined || limited === undefined) continue;
    const order = requested.compare(limited);
    if (overcommits && order > 0) {
      yield invalid(here, String(value), `must be less than or equal to ${name} limit of ${limited.toString()}`);
    }
    if (!overcommits && order !== 0) {
      yield invalid(here, String(value), `must be equal to ${name} limit of ${limited.toString()}`);
    }
  }
  const names = [...Object.keys(resources.limits ?? {}), ...Object.keys(resources.requests ?? {})];
  const hasHugePages = names.some((name) => (pageSizeOf(name) ?? 0n) > 0n);
  if (hasHugePages && !names.includes("cpu") && !names.includes("memory")) {
    yield forbidden(path, "HugePages require cpu or memory");
  }
}

/** Huge pages come whole (upstream: IsHugePageResourceValueDivisible). */
function* validatePages(name: string, value: string | number, path: FieldPath): Iterable<FieldError> {
  const size = pageSizeOf(name);
  const amount = readQuantity(value);
  if (size === undefined || amount === undefined || amount.value() % size === 0n) return;
  yield invalid(path, value, `${amount.toString()} is not positive integer multiple of ${name}`);
}

function resourceNameProblem(name: string): string | undefined {
  if (nativeResources.has(name)) return undefined;
  if (name.startsWith("hugepages-")) {
    return (pageSizeOf(name) ?? 0n) > 0n ? undefined : "must have a page size, such as hugepages-2Mi";
  }
  if (!name.includes("/")) return "must be a standard resource for containers, or fully qualified (example.com/name)";
  return qualifiedNameProblem(name);
}

function* validateVolumeMounts(container: Container, path: FieldPath, pod: PodContext): Iterable<FieldError> {
  const paths = new Set<string>();
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const here = [...path, "volumeMounts", index];
    if (mount.name === "") yield required([...here, "name"]);
    else if (!pod.volumeNames.has(mount.name)) yield notFound([...here, "name"], mount.name);
    if (mount.mountPath === "") yield required([...here, "mountPath"]);
    else if (paths.has(mount.mountPath)) yield invalid([...here, "mountPath"], mount.mountPath, "must be unique");
    paths.add(mount.mountPath);
    for (const field of ["subPath", "subPathExpr"] as const) {
      const problem = localPathProblem(mount[field] ?? "");
      if (problem !== undefined) yield invalid([...here, field], mount[field] ?? "", problem);
    }
    if (mount.subPath && mount.subPathExpr) {
      yield invalid([...here, "subPathExpr"], mount.subPathExpr, "subPathExpr and subPath are mutually exclusive");
    }
    yield* validateMountOptions(mount, here, container.securityContext?.privileged === true);
  }
}

function* validateMountOptions(mount: VolumeMount, path: FieldPath, privileged: boolean): Iterable<FieldError> {
  const { mountPropagation = "None", recursiveReadOnly = "Disabled", readOnly } = mount;
  const propagations = ["Bidirectional", "HostToContainer", "None"];
  if (!propagations.includes(mountPropagation)) {
    yield notSupported([...path, "mountPropagation"], mountPropagation, propagations);
  } else if (mountPropagation === "Bidirectional" && !privileged) {
    const detail = "Bidirectional mount propagation is available only to privileged containers";
    yield forbidden([...path, "mountPropagation"], detail);
  }
  const here = [...path, "recursiveReadOnly"];
  const modes = ["Disabled", "Enabled", "IfPossible"];
  if (!modes.includes(recursiveReadOnly)) yield notSupported(here, recursiveReadOnly, modes);
  else if (recursiveReadOnly === "Disabled") return;
  if (readOnly !== true) yield forbidden(here, "may only be specified when readOnly is true");
  if (mountPropagation !== "None") {
    yield forbidden(here, "may only be specified when mountPropagation is None or not specified");
  }
}

/** 0 … 2³¹−1: what Kubernetes takes as a user or group. */
export function* validateId(id: number | undefined, path: FieldPath): Iterable<FieldError> {
  if (id !== undefined && (id < 0 || id > 2 ** 31 - 1)) {
    yield invalid(path, id, "must be between 0 and 2147483647, inclusive");
  }
}

function* validateSecurity(container: Container, path: FieldPath, pod: PodContext): Iterable<FieldError> {
  const context = container.securityContext;
  if (context === undefined) return;
  const here = [...path, "securityContext"];
  yield* validateId(context.runAsUser, [...here, "runAsUser"]);
  yield* validateId(context.runAsGroup, [...here, "runAsGroup"]);
  if (context.procMount !== undefined) {
    const supported = ["Default", "Unmasked"];
    if (!supported.includes(context.procMount)) {
      yield notSupported([...here, "procMount"], context.procMount, supported);
    } else if (context.procMount === "Unmasked" && pod.hostUsers) {
      yield invalid([...here, "procMount"], context.procMount, "`hostUsers` must be false to use `Unmasked`");
    }
  }
  if (context.allowPrivilegeEscalation === false) {
    const flag = [...here, "allowPrivilegeEscalation"];
    if (context.privileged === true) {
      yield invalid(flag, false, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    if (context.capabilities?.add?.includes("CAP_SYS_ADMIN") === true) {
      yield invalid(flag, false, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
    }
  }
  yield* validateProfiles(context, here);
}

type Profiles = Pick<NonNullable<Container["securityContext"]>, "seccompProfile" | "appArmorProfile">;

/** Checks the seccomp and AppArmor profiles of a container's or pod's security context. */
export function* validateProfiles(context: Profiles, path: FieldPath): Iterable<FieldError> {
  const types = ["Localhost", "RuntimeDefault", "Unconfined"];
  for (const field of ["seccompProfile", "appArmorProfile"] as const) {
    const profile = context[field];
    if (profile === undefined) continue;
    const here = [...path, field];
    const name = profile.localhostProfile;
    if (!types.includes(profile.type)) yield notSupported([...here, "type"], profile.type, types);
    if (profile.type === "Localhost") {
      if (!name) yield required([...here, "localhostProfile"], "must be set when the type is Localhost");
      else {
        const problem = field === "seccompProfile" ? localPathProblem(name) : appArmorNameProblem(name);
        if (problem !== undefined) yield invalid([...here, "localhostProfile"], name, problem);
      }
    } else if (name !== undefined) {
      yield forbidden([...here, "localhostProfile"], "may only be set when the type is Localhost");
    }
  }
}

function appArmorNameProblem(name: string): string | undefined {
  if (name.length > 4095) return "must be no more than 4095 characters";
  return name === name.trim() ? undefined : "must not be padded with whitespace";
}
