import { containersOf } from "../../api/all-containers.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { subscriptOf } from "../../api/subscript.ts";
import type { EnvVarSource } from "../../api/volume.ts";
import type { ResourceSettings } from "../../resources/container-resources.ts";
import { parseList, type Quantities } from "../../resources/pod-totals.ts";
import { parseQuantity, type Quantity, quantityOf, zeroQuantity } from "../../resources/quantity.ts";
import { ContainerConfigError } from "./container-config-error.ts";

/** The inputs of the downward API beside the pod's spec. */
export interface DownwardApiInputs {
  /** The pod's addresses, the primary one first. */
  readonly podIPs: readonly string[];
  /** The node's addresses, the primary one first. */
  readonly hostIPs: readonly string[];
  readonly resources: Pick<ResourceSettings, "allocatable">;
}

type FieldSelector = NonNullable<EnvVarSource["fieldRef"]>;
type ResourceSelector = NonNullable<EnvVarSource["resourceFieldRef"]>;

/** The value of a pod's field. @throws ContainerConfigError for unsupported fields */
export function fieldValue(selector: FieldSelector, pod: Pod, inputs: DownwardApiInputs): string {
  const { apiVersion = "v1", fieldPath } = selector;
  if (apiVersion !== "v1") throw new ContainerConfigError(`unsupported pod version: ${apiVersion}`);
  const { metadata, spec } = pod;
  const subscripted = subscriptOf(fieldPath);
  if (subscripted !== undefined) return subscriptValue(pod, subscripted.path, subscripted.key);
  switch (fieldPath) {
    case "metadata.name":
      return metadata.name;
    case "metadata.namespace":
      return metadata.namespace;
    case "metadata.uid":
      return metadata.uid;
    case "metadata.labels":
      return formatMap(metadata.labels ?? {});
    case "metadata.annotations":
      return formatMap(metadata.annotations ?? {});
    case "spec.nodeName":
    case "spec.host":
      return spec.nodeName ?? "";
    case "spec.serviceAccountName":
      return spec.serviceAccountName ?? "";
    case "status.hostIP":
      return firstAddress(inputs.hostIPs);
    case "status.hostIPs":
      firstAddress(inputs.hostIPs);
      return inputs.hostIPs.join(",");
    case "status.podIP":
      return inputs.podIPs[0] ?? "";
    case "status.podIPs":
      return inputs.podIPs.join(",");
    default:
      throw new ContainerConfigError(`field label not supported: ${fieldPath}`);
  }
}

/**
 * A container's request or limit for an environment variable, in units of the divisor, rounded up. An unset CPU, memory
 * or ephemeral storage limit defaults to the pod's, else to node allocatable, except that of an init container named in
 * the selector: that is 0, as upstream's.
 * @throws ContainerConfigError for unsupported resources and unknown containers
 */
export function resourceValue(
  selector: ResourceSelector,
  pod: Pod,
  container: Container,
  inputs: DownwardApiInputs,
): string {
  const { containerName } = selector;
  const subject = containerName ? containerNamed(pod, containerName) : container;
  const isDefaulted = !containerName || pod.spec.containers.includes(subject);
  return valueOf(selector, subject, isDefaulted ? podLimits(pod, inputs) : new Map());
}

/**
 * The same for a file of a volume: upstream's take no limit from the pod, and default to node allocatable.
 * @throws ContainerConfigError for unsupported resources and unknown containers
 */
export function resourceFileValue(
  selector: ResourceSelector & { readonly containerName: string },
  pod: Pod,
  { resources }: DownwardApiInputs,
): string {
  return valueOf(selector, containerNamed(pod, selector.containerName), parseList(resources.allocatable));
}

/** @param defaults for limits that are not set */
function valueOf(selector: ResourceSelector, { resources }: Container, defaults: Quantities): string {
  const match = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(selector.resource);
  if (match === null) throw new ContainerConfigError(`unsupported container resource : ${selector.resource}`);
  const [, kind, resource = ""] = match;
  const own = parseList(kind === "limits" ? resources?.limits : resources?.requests).get(resource);
  const isUnset = own === undefined || own.isZero;
  const isDefaulted = isUnset && kind === "limits" && !resource.startsWith("hugepages-");
  const quantity = isDefaulted ? defaults.get(resource) : own;
  return (quantity ?? zeroQuantity).dividedBy(divisorOf(selector)).toString();
}

function subscriptValue(pod: Pod, path: string, key: string): string {
  switch (path) {
    case "metadata.labels":
      return ownValue(pod.metadata.labels, key);
    case "metadata.annotations":
      return ownValue(pod.metadata.annotations, key);
    default:
      throw new ContainerConfigError(`field label does not support subscript: ${path}['${key}']`);
  }
}

function ownValue(map: Readonly<Record<string, string>> | undefined, key: string): string {
  return map !== undefined && Object.hasOwn(map, key) ? (map[key] ?? "") : "";
}

/** `key="value"` per line, sorted, quoted as in Go. */
export function formatMap(map: Readonly<Record<string, string>>): string {
  return Object.keys(map)
    .toSorted()
    .map((key) => `${key}=${goQuote(map[key] ?? "")}`)
    .join("\n");
}

/** A string literal of Go (strconv.Quote): printable characters as they are, others escaped. */
function goQuote(text: string): string {
  const escapes: Readonly<Record<string, string>> = {
    '"': '\\"',
    "\\": "\\\\",
    "\x07": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
  };
  // Letters, marks, numbers, punctuation, symbols and the plain space are printable to Go.
  const escaped = text.toWellFormed().replaceAll(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const short = escapes[character];
    if (short !== undefined) return short;
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 0x1_0000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return `"${escaped}"`;
}

function firstAddress(hostIPs: readonly string[]): string {
  const [first] = hostIPs;
  if (first === undefined) throw new ContainerConfigError("the node's address is not known");
  return first;
}

function containerNamed(pod: Pod, name: string): Container {
  const found = containersOf(pod.spec).find((other) => other.name === name);
  if (found === undefined) throw new ContainerConfigError(`container ${name} not found`);
  return found;
}

/** The pod's limits, and node allocatable for the others. Pods have no limit of ephemeral storage. */
function podLimits({ spec }: Pod, inputs: DownwardApiInputs): Quantities {
  const limits = [...parseList(spec.resources?.limits)].filter(
    ([resource, limit]) => resource !== "ephemeral-storage" && !limit.isZero,
  );
  return new Map([...parseList(inputs.resources.allocatable), ...limits]);
}

function divisorOf(selector: ResourceSelector): Quantity {
  const divisor = parseQuantity(selector.divisor ?? "0");
  return divisor.isZero ? quantityOf(1n, "DecimalSI") : divisor;
}
