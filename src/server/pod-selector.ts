import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import { didYouMean } from "../sources/suggest.ts";

/** More names than these are too many to read in an error. */
const shownNames = 8;

/** The name, and before it the namespace where that is not `default`: what a person may type to mean the pod. */
export function podLabel(pod: Pick<PodRef, "namespace" | "name">): string {
  return pod.namespace === "default" || pod.namespace === "" ? pod.name : `${pod.namespace}/${pod.name}`;
}

/**
 * The error for a selector that means no pod: with those whose names begin with it, as a static pod's does that has its
 * node's name behind its own, else with one that is spelled nearly so, else with all that there are.
 */
export function noSuchPod(selector: string, pods: readonly PodRef[]): PodwrightError {
  return new PodwrightError(ExitCode.badInput, `there is no pod ${JSON.stringify(selector)}`, {
    remedy: remedyFor(selector, pods),
  });
}

function remedyFor(selector: string, pods: readonly PodRef[]): string {
  const labels = labelsOf(pods);
  if (labels.length === 0) return "there are no pods here";
  const beginning = selector === "" ? [] : labelsOf(pods.filter((pod) => begins(pod, selector)));
  if (beginning.length > 1) return `these begin so: ${listed(beginning)}`;
  const near = beginning[0] ?? didYouMean(selector, labels);
  return near === undefined ? `there are: ${listed(labels)}` : `did you mean ${near}?`;
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
