import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import { didYouMean } from "../base/did-you-mean.ts";

/** Maximum number of names in an error. */
const shownNames = 8;

/** The name, prefixed with the namespace unless `default`: what a person may type for the pod. */
export function podLabel(pod: Pick<PodRef, "namespace" | "name">): string {
  return pod.namespace === "default" || pod.namespace === "" ? pod.name : `${pod.namespace}/${pod.name}`;
}

/** Whether `selector`, a name, `namespace/name` or UID, may mean the pod. */
export function isSelectedBy(
  { namespace, name, uid }: Pick<PodRef, "namespace" | "name"> & { readonly uid: string },
  selector: string,
): boolean {
  return selector === uid || selector === name || selector === `${namespace}/${name}`;
}

/** The remedy for a rejected manifest. */
export const mendManifest = "fix the manifest, or remove it";

/** A rejected manifest, and why. */
interface RejectedManifest {
  /** The name of its object, if known. */
  readonly object?: string | undefined;
  readonly place: string;
  readonly message: string;
}

/**
 * Problems of rejected manifests that would define a pod of that name, with or without the node's name appended. If a
 * file's object is unknown, the file's name counts.
 */
export function rejectedAs(selector: string, rejected: readonly RejectedManifest[], nodeName: string): string[] {
  const wanted = selector.slice(selector.indexOf("/") + 1);
  const names = (name: string): boolean => wanted === name || wanted === `${name}-${nodeName}`;
  return rejected.filter(({ object, place }) => names(object ?? stem(place))).map(({ message }) => message);
}

/** `web` of `/etc/kubernetes/manifests/web.yaml`. */
function stem(place: string): string {
  return place.slice(place.lastIndexOf("/") + 1).replace(/\.(?:ya?ml|json)$/u, "");
}

/**
 * The error for a selector that matches no pod: that its manifest is rejected, and why; else with the pods of that
 * prefix, such as a static pod with the node's name appended, else with a similar name, else with all pods.
 */
export function noSuchPod(selector: string, pods: readonly PodRef[], rejected: readonly string[] = []): PodwrightError {
  const [first, ...others] = rejected;
  if (first !== undefined) {
    const more = others.length === 0 ? "" : ` (and ${others.length} more: 'podwright doctor' lists them)`;
    const message = `pod ${JSON.stringify(selector)} not found: its manifest is rejected: ${first}${more}`;
    return new PodwrightError(ExitCode.badInput, message, { remedy: mendManifest });
  }
  return new PodwrightError(ExitCode.badInput, `pod ${JSON.stringify(selector)} not found`, {
    remedy: remedyFor(selector, pods),
  });
}

function remedyFor(selector: string, pods: readonly PodRef[]): string {
  const labels = labelsOf(pods);
  if (labels.length === 0) return "this node has no pods";
  const beginning = selector === "" ? [] : labelsOf(pods.filter((pod) => begins(pod, selector)));
  if (beginning.length > 1) return `pods with this prefix: ${listed(beginning)}`;
  const near = beginning[0] ?? didYouMean(selector, labels);
  return near === undefined ? `existing pods: ${listed(labels)}` : `did you mean ${near}?`;
}

function begins({ namespace, name, uid }: PodRef, selector: string): boolean {
  return name.startsWith(selector) || `${namespace}/${name}`.startsWith(selector) || uid.startsWith(selector);
}

function labelsOf(pods: readonly PodRef[]): string[] {
  return [...new Set(pods.map(podLabel))].toSorted();
}

function listed(labels: readonly string[]): string {
  const more = labels.length - shownNames;
  return `${labels.slice(0, shownNames).join(", ")}${more > 0 ? ` and ${more} more ('podwright ps' lists them)` : ""}`;
}
