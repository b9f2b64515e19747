import type { Container } from "../api/container.ts";
import type { PodManifest } from "../api/pod.ts";
import { nanosPerUnit, readQuantity } from "../resources/quantity.ts";
import { isCapability, nearestCapability, plainCapability } from "../runtime/config/capabilities.ts";
import type { FieldError } from "./field-errors.ts";
import { isIpAddress } from "../base/formats.ts";
import { quote, type FieldPath } from "../yaml/manifest-error.ts";
import { deprecatedLabels } from "./warn-labels.ts";
import { overlappingPaths } from "./warn-paths.ts";
import { portWarnings } from "./warn-ports.ts";

/**
 * Valid but unlikely values, in the API server's words for its warnings (pkg/api/pod/warnings.go), as far as they
 * matter without a scheduler; and capabilities with a prefix. Expects a manifest as written.
 */
export function podWarnings({ metadata, spec }: PodManifest): FieldError[] {
  return [
    ...deprecatedLabels(spec),
    ...deadAnnotations(metadata.annotations ?? {}, spec),
    ...overlappingPaths(spec.volumes ?? []),
    ...repeated(spec.hostAliases ?? [], "ip", ["spec", "hostAliases"]),
    ...repeated(spec.imagePullSecrets ?? [], "name", ["spec", "imagePullSecrets"]),
    ...emptySecretNames(spec.imagePullSecrets ?? []),
    ...[...containersOf(spec)].flatMap(({ container, path }) => [...containerWarnings(container, path)]),
    ...portWarnings([...containersOf(spec)]),
    ...negativeGrace(spec.terminationGracePeriodSeconds),
    ...(spec.dnsConfig?.nameservers ?? []).flatMap((ip, index) =>
      addressWarning(ip, ["spec", "dnsConfig", "nameservers", index]),
    ),
    ...(spec.hostAliases ?? []).flatMap(({ ip }, index) => addressWarning(ip, ["spec", "hostAliases", index, "ip"])),
  ];
}

function* containersOf(spec: PodManifest["spec"]): Iterable<{ container: Container; path: FieldPath }> {
  for (const kind of ["initContainers", "containers", "ephemeralContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) yield { container, path: ["spec", kind, index] };
  }
}

/** Annotations that meant something once. */
const annotations: Readonly<Record<string, string>> = {
  "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
  "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
  "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
};
const noSeccomp = 'non-functional in v1.27+; use the "seccompProfile" field instead';

function* deadAnnotations(given: Readonly<Record<string, string>>, spec: PodManifest["spec"]): Iterable<FieldError> {
  const has = (key: string): boolean => Object.hasOwn(given, key);
  const warning = (key: string, detail: string): FieldError => ({ path: ["metadata", "annotations", key], detail });
  for (const [key, detail] of Object.entries(annotations)) if (has(key)) yield warning(key, detail);
  const ofPod = "seccomp.security.alpha.kubernetes.io/pod";
  if (has(ofPod) && spec.securityContext?.seccompProfile === undefined) yield warning(ofPod, noSeccomp);
  for (const { container } of containersOf(spec)) {
    const key = `container.seccomp.security.alpha.kubernetes.io/${container.name}`;
    if (has(key) && container.securityContext?.seccompProfile === undefined) yield warning(key, noSeccomp);
  }
}

function repeated<K extends string>(
  items: readonly { readonly [field in K]?: string | undefined }[],
  field: K,
  path: FieldPath,
): FieldError[] {
  const seen = new Set<string>();
  return items.flatMap(({ [field]: value = "" }, index) => {
    if (!seen.has(value)) return seen.add(value) && [];
    return [{ path: [...path, index, field], detail: `duplicate ${field} ${quote(value)}` }];
  });
}

function emptySecretNames(secrets: readonly { readonly name?: string | undefined }[]): FieldError[] {
  return secrets.flatMap(({ name = "" }, index) =>
    name === "" ? [{ path: ["spec", "imagePullSecrets", index, "name"], detail: 'invalid empty name ""' }] : [],
  );
}

function* containerWarnings(container: Container, path: FieldPath): Iterable<FieldError> {
  for (const kind of ["limits", "requests"] as const) {
    for (const [name, amount] of Object.entries(container.resources?.[kind] ?? {})) {
      const fraction = fractionProblem(name, amount);
      if (fraction !== undefined) yield { path: [...path, "resources", kind, name], detail: fraction };
    }
  }
  yield* hiddenVariables(container, [...path, "env"]);
  for (const kind of ["add", "drop"] as const) {
    for (const [index, name] of (container.securityContext?.capabilities?.[kind] ?? []).entries()) {
      const detail = capabilityProblem(name);
      if (detail !== undefined) yield { path: [...path, "securityContext", "capabilities", kind, index], detail };
    }
  }
}

function capabilityProblem(name: string): string | undefined {
  if (!isCapability(name)) {
    const meant = nearestCapability(name);
    const hint = meant === undefined ? "" : `; did you mean ${quote(meant)}?`;
    return `${quote(name)} is not a Linux capability; runtimes ignore or reject it${hint}`;
  }
  const plain = plainCapability(name);
  if (plain === name) return undefined;
  return `${quote(name)} is called ${quote(plain)} in Kubernetes; podwright accepts it, the Go kubelet does not`;
}

function fractionProblem(name: string, amount: string | number): string | undefined {
  if (name !== "memory" && name !== "ephemeral-storage") return undefined;
  const quantity = readQuantity(amount);
  // Validation reports invalid quantities.
  if (quantity === undefined || quantity.nanos % nanosPerUnit === 0n) return undefined;
  const thousandths = /^(\d+)m$/u.exec(String(amount).trim())?.[1];
  const hint = thousandths === undefined ? "" : ` (m stands for thousandths; did you mean ${thousandths}Mi?)`;
  return `fractional byte value ${quote(quantity.toString())} is invalid, must be an integer${hint}`;
}

/** A later variable may build on an earlier one of its name; anything else hides it. */
function* hiddenVariables({ env = [] }: Container, path: FieldPath): Iterable<FieldError> {
  const seen = new Set<string>();
  for (const [index, { name, value = "", valueFrom }] of env.entries()) {
    const reference = `$(${name})`;
    const hides = valueFrom !== undefined || value === reference || !value.includes(reference);
    if (seen.has(name) && hides) {
      const detail = `hides previous definition of ${quote(name)}, which may be dropped when using apply`;
      yield { path: [...path, index], detail };
    }
    seen.add(name);
  }
}

function negativeGrace(seconds = 0): FieldError[] {
  if (seconds >= 0) return [];
  const detail = "must be >= 0; negative values are invalid and will be treated as 1";
  return [{ path: ["spec", "terminationGracePeriodSeconds"], detail }];
}

function addressWarning(address: string, path: FieldPath): FieldError[] {
  if (!address.includes(":") || !isIpAddress(address)) return [];
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  if (canonical === address) return [];
  const detail = `IPv6 address ${quote(address)} should be in RFC 5952 canonical format (${quote(canonical)})`;
  return [{ path, detail }];
}
