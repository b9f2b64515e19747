import type { ContainerPort } from "../api/container.ts";
import type { Volume } from "../api/volume.ts";
import type { PodManifest, PodSpec } from "../api/pod.ts";
import { normalizeSysctl, sysctlNamespace } from "../runtime/config/sysctls.ts";
import { duplicate, forbidden, invalid, notSupported, required, tooLong, type FieldError } from "./field-errors.ts";
import {
  dnsLabelProblem,
  dnsSearchProblem,
  dnsSubdomainProblem,
  ipAddressProblem,
  qualifiedNameProblem,
} from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateContainer, validateId, validateProfiles, type PodContext } from "./validate-container.ts";
import { validateAnnotations } from "./validate-annotations.ts";
import { validateAppArmor } from "./validate-app-armor.ts";
import { validateEphemeralContainers } from "./validate-ephemeral.ts";
import { validateHostUsers } from "./validate-host-users.ts";
import { nameTooLong, validateMetadata } from "./validate-metadata.ts";
import { validateScheduling } from "./validate-scheduling.ts";
import { validateVolumes } from "./validate-volumes.ts";
import { validateLifecycle } from "./validate-lifecycle.ts";
import { validateProbes } from "./validate-probes.ts";
import { validatePodResources, validateResizePolicy } from "./validate-resources.ts";
import { validateRestartRules } from "./validate-restart.ts";

/**
 * Everything that makes a pod impossible, as the API server would say it (upstream: ValidatePodCreate), as far as a
 * node depends on it. Expects the defaults to be filled in.
 */
export function validatePod(pod: PodManifest): FieldError[] {
  return [
    ...validateMetadata(pod.metadata),
    ...nameTooLong(pod.metadata, ""),
    ...validateSpec(pod.spec, ["spec"]),
    ...validateAnnotations(pod),
    ...validateAppArmor(pod),
  ];
}

function* validateSpec(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  yield* validateVolumes(spec, [...path, "volumes"]);
  yield* validateContainers(spec, path);
  yield* validateTimes(spec, path);
  yield* validateNames(spec, path);
  yield* validateDns(spec, path);
  yield* validateSecurity(spec, path);
  yield* validateScheduling(spec, path);
  yield* validatePodResources(spec, [...path, "resources"]);
  for (const [index, { conditionType }] of (spec.readinessGates ?? []).entries()) {
    const problem = qualifiedNameProblem(conditionType);
    if (problem !== undefined) {
      yield invalid([...path, "readinessGates", index, "conditionType"], conditionType, problem);
    }
  }
}

function isClaim({ persistentVolumeClaim, ephemeral }: Volume): boolean {
  return persistentVolumeClaim !== undefined || ephemeral !== undefined;
}

function* validateContainers(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  const pod: PodContext = {
    volumeNames: new Set((spec.volumes ?? []).map((volume) => volume.name)),
    emptyDirNames: new Set((spec.volumes ?? []).filter(({ emptyDir }) => emptyDir).map((volume) => volume.name)),
    claimNames: new Set((spec.volumes ?? []).filter(isClaim).map((volume) => volume.name)),
    hostNetwork: spec.hostNetwork === true,
    hostUsers: spec.hostUsers !== false,
  };
  if (spec.containers.length === 0) yield required([...path, "containers"]);
  const names = new Set<string>();
  for (const kind of ["containers", "initContainers", "ephemeralContainers"] as const) {
    let ports = new Map<string, ContainerPort>();
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      // Init containers run one by one.
      if (kind === "initContainers") ports = new Map();
      const here = [...path, kind, index];
      yield* validateContainer(container, here, kind === "containers" ? pod : { ...pod, hostNetwork: false });
      yield* validateLifecycle(container, kind, [...here, "lifecycle"], spec);
      yield* validateProbes(container, kind, here);
      yield* validateResizePolicy(container, kind, [...here, "resizePolicy"], spec);
      if (kind !== "ephemeralContainers") yield* validateRestartRules(container, here);
      if (names.has(container.name) && container.name !== "") yield duplicate([...here, "name"], container.name);
      names.add(container.name);
      yield* hostPortConflicts(container.ports ?? [], ports, [...here, "ports"]);
    }
  }
  yield* validateEphemeralContainers(spec, [...path, "ephemeralContainers"]);
}

function* hostPortConflicts(
  ports: readonly ContainerPort[],
  taken: Map<string, ContainerPort>,
  path: FieldPath,
): Iterable<FieldError> {
  for (const [index, port] of ports.entries()) {
    if (port.hostPort === undefined || port.hostPort === 0) continue;
    const key = `${port.protocol ?? "TCP"}/${port.hostIP ?? ""}/${port.hostPort}`;
    if (taken.has(key)) yield duplicate([...path, index, "hostPort"], port.hostPort);
    taken.set(key, port);
  }
}

function* validateTimes(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > 2 ** 31 - 1)) {
    yield invalid([...path, "activeDeadlineSeconds"], deadline, "must be between 1 and 2147483647, inclusive");
  }
}

function* validateNames(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  for (const field of ["hostname", "subdomain"] as const) {
    const value = spec[field];
    const problem = value ? dnsLabelProblem(value) : undefined;
    if (value && problem !== undefined) yield invalid([...path, field], value, problem);
  }
  for (const field of ["nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName"] as const) {
    const value = spec[field];
    const problem = value === undefined ? undefined : dnsSubdomainProblem(value);
    if (value !== undefined && problem !== undefined) yield invalid([...path, field], value, problem);
  }
  yield* validateHostnameOverride(spec, [...path, "hostnameOverride"]);
  for (const [index, alias] of (spec.hostAliases ?? []).entries()) {
    const here = [...path, "hostAliases", index];
    const ipProblem = ipAddressProblem(alias.ip);
    if (ipProblem !== undefined) yield invalid([...here, "ip"], alias.ip, ipProblem);
    for (const [position, name] of (alias.hostnames ?? []).entries()) {
      const problem = dnsSubdomainProblem(name);
      if (problem !== undefined) yield invalid([...here, "hostnames", position], name, problem);
    }
  }
}

function* validateHostnameOverride(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  const { hostnameOverride: name } = spec;
  if (name === undefined) return;
  for (const field of ["setHostnameAsFQDN", "hostNetwork"] as const) {
    if (spec[field] === true) yield forbidden(path, `may not be specified when ${field} is true`);
  }
  if (name.length > 64) yield tooLong(path, "64 bytes");
  const problem = dnsSubdomainProblem(name);
  if (problem !== undefined) yield invalid(path, name, problem);
}

function* validateDns(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  const nameservers = spec.dnsConfig?.nameservers ?? [];
  const searches = spec.dnsConfig?.searches ?? [];
  const here = [...path, "dnsConfig"];
  if (spec.dnsPolicy === "None" && nameservers.length === 0) {
    yield required([...here, "nameservers"], "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  if (nameservers.length > 3) yield tooLong([...here, "nameservers"], "3 nameservers");
  for (const [index, address] of nameservers.entries()) {
    const problem = ipAddressProblem(address);
    if (problem !== undefined) yield invalid([...here, "nameservers", index], address, problem);
  }
  if (searches.length > 32) yield tooLong([...here, "searches"], "32 search paths");
  if (searches.join(" ").length > 2048) yield tooLong([...here, "searches"], "2048 characters (including spaces)");
  for (const [index, search] of searches.entries()) {
    const problem = search === "." ? undefined : dnsSearchProblem(search.replace(/\.$/u, ""));
    if (problem !== undefined) yield invalid([...here, "searches", index], search, problem);
  }
  for (const [index, option] of (spec.dnsConfig?.options ?? []).entries()) {
    if (!option.name) yield required([...here, "options", index, "name"], "must not be empty");
  }
}

function* validateSecurity(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  yield* validateHostUsers(spec, path);
  if (spec.shareProcessNamespace === true && spec.hostPID === true) {
    const detail = "shareProcessNamespace and hostPID cannot both be enabled";
    yield invalid([...path, "shareProcessNamespace"], true, detail);
  }
  const context = spec.securityContext;
  if (context === undefined) return;
  const here = [...path, "securityContext"];
  yield* validateId(context.runAsUser, [...here, "runAsUser"]);
  yield* validateId(context.runAsGroup, [...here, "runAsGroup"]);
  yield* validateId(context.fsGroup, [...here, "fsGroup"]);
  for (const [index, group] of (context.supplementalGroups ?? []).entries()) {
    yield* validateId(group, [...here, "supplementalGroups", index]);
  }
  const policies = ["OnRootMismatch", "Always"];
  if (context.fsGroupChangePolicy !== undefined && !policies.includes(context.fsGroupChangePolicy)) {
    yield notSupported([...here, "fsGroupChangePolicy"], context.fsGroupChangePolicy, policies);
  }
  // MountOption needs the gate SELinuxMount, which is off by default.
  if (context.seLinuxChangePolicy !== undefined && context.seLinuxChangePolicy !== "Recursive") {
    yield notSupported([...here, "seLinuxChangePolicy"], context.seLinuxChangePolicy, ["Recursive"]);
  }
  yield* validateSysctls(spec, [...here, "sysctls"]);
  yield* validateProfiles(context, here);
}

const sysctlName = /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:[./][a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*$/u;

function* validateSysctls(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  const names = new Set<string>();
  for (const [index, { name }] of (spec.securityContext?.sysctls ?? []).entries()) {
    const here = [...path, index, "name"];
    const plain = normalizeSysctl(name);
    const namespace = sysctlNamespace(plain);
    if (name === "") yield required(here);
    else if (name.length > 253 || !sysctlName.test(name)) yield invalid(here, name, "must be the name of a sysctl");
    else if (names.has(name)) yield duplicate(here, name);
    names.add(name);
    if (spec.hostNetwork === true && namespace === "Net") {
      yield invalid(here, name, "may not be specified when 'hostNetwork' is true");
    }
    if (spec.hostIPC === true && namespace === "IPC") {
      yield invalid(here, name, "may not be specified when 'hostIPC' is true");
    }
  }
}
