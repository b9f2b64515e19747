import * as z from "zod";
import { podUid } from "../base/ids.ts";
import { ApiDecodeError } from "../api-client/api-error.ts";
import { versionOf } from "../api-client/collected.ts";
import { isRecord, type Resource, withoutManagedFields } from "../api-client/resource.ts";
import { type Pod, PodManifest } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import { withDefaults } from "./defaults.ts";
import { dnsLabelProblem, dnsSubdomainProblem, podUidProblem } from "../base/formats.ts";
import { describeSchemaErrors } from "./schema-errors.ts";
import { findUnsupported } from "./unsupported.ts";

/** A pod of the API server. */
export interface ApiPod extends Pod {
  /** The server's: from an earlier run, or changed by others. */
  readonly status: PodStatus | undefined;
  /** Unsupported parts of the pod, in words; empty: none. */
  readonly unsupported: string;
  /** Fields were left out, as they can't be read: the spec may say less than the server's. */
  readonly isPartial: boolean;
  /**
   * All that the server sent but its version and what only reports of its status, as text: while that stays the same,
   * only these have changed.
   */
  readonly definition: string;
}

/** A container state of an earlier run: only what later states depend on is validated. */
const State = z.looseObject({
  waiting: z.looseObject({}).optional(),
  running: z.looseObject({}).optional(),
  terminated: z.looseObject({ exitCode: z.number() }).optional(),
});
const ContainerStatuses = z
  .array(z.looseObject({ name: z.string(), state: State, lastState: State, restartCount: z.number() }))
  .optional();
const Addresses = z.array(z.looseObject({ ip: z.string() })).optional();
const StatusSchema = z.looseObject({
  phase: z.string(),
  conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).optional(),
  hostIPs: Addresses,
  podIPs: Addresses,
  initContainerStatuses: ContainerStatuses,
  containerStatuses: ContainerStatuses,
  ephemeralContainerStatuses: ContainerStatuses,
});

/** Rounds in which fields that are not known are taken out: each finds those of one level at least. */
const maxRounds = 20;

/**
 * Reads a pod of the API server. Unknown fields are dropped, as by upstream's decoder: a newer server may have them,
 * and they are not the pod's fault. Known fields that are unreadable or unsupported are reported. The server has
 * validated the rest.
 * @param before the previous version of the pod: most changes concern its status, and then the rest is not read again
 * @throws ApiDecodeError if it is not a pod
 */
function decodeApiPod(value: unknown, before?: ApiPod): ApiPod {
  const sent = withoutManagedFields(value);
  const status = readPodStatus(sent);
  const definition = definitionOf(sent);
  if (before?.definition === definition) {
    return { ...before, metadata: { ...before.metadata, resourceVersion: versionOf(sent) }, status };
  }
  const problems: string[] = [];
  const manifest = lenient(sent, problems);
  const { name, namespace, uid } = manifest.metadata;
  if (!name || !namespace || !uid) throw new ApiDecodeError("Pod: has no name, namespace or UID");
  // They name directories.
  const problem = podUidProblem(uid) ?? dnsSubdomainProblem(name) ?? dnsLabelProblem(namespace);
  if (problem !== undefined) throw new ApiDecodeError(`Pod: its name, namespace or UID ${problem}`);
  problems.push(...badNames(manifest.spec));
  const unsupported = [
    ...problems,
    ...findUnsupported(manifest, "api").map(({ path, detail }) => `${path.join(".")}: ${detail}`),
  ];
  return {
    metadata: { ...manifest.metadata, name, namespace, uid: podUid(uid) },
    spec: withDefaults(manifest).spec,
    status,
    unsupported: unsupported.join("; "),
    isPartial: problems.length > 0,
    definition,
  };
}

function definitionOf(sent: unknown): string {
  if (!isRecord(sent)) return "";
  const { status, metadata, ...rest } = sent;
  const { resourceVersion: _version, ...stable } = isRecord(metadata) ? metadata : {};
  // Not a report, but the scheduler's word on which claim gives the pod its devices.
  const claim = isRecord(status) ? status["extendedResourceClaimStatus"] : undefined;
  return JSON.stringify({ ...rest, metadata: stable, claim });
}

/** The status of a pod as the server sent it; undefined: it has none, or an unusable one. */
export function readPodStatus(sent: unknown): PodStatus | undefined {
  const status = StatusSchema.safeParse(isRecord(sent) ? sent["status"] : undefined);
  // Only kubelets write what is read of it here.
  return status.success ? (status.data as unknown as PodStatus) : undefined;
}

export const apiPods: Resource<ApiPod> = { base: "/api/v1", plural: "pods", kind: "Pod", decode: decodeApiPod };

/** Names that the server never lets through, as they could leave the directories that are called by them. */
function badNames({ containers, initContainers = [], ephemeralContainers = [], volumes = [] }: PodManifest["spec"]) {
  const lists = { containers, initContainers, ephemeralContainers, volumes };
  return Object.entries(lists).flatMap(([list, named]) =>
    named.flatMap(({ name }, index) => {
      const problem = dnsLabelProblem(name);
      return problem === undefined ? [] : [`spec.${list}.${index}.name: ${problem}`];
    }),
  );
}

/** @param problems receives invalid fields, which are dropped */
function lenient(value: unknown, problems: string[]): PodManifest {
  const manifest = isObject(value) ? wholeManifest(value) : value;
  for (let round = 0; ; round++) {
    const result = PodManifest.safeParse(manifest);
    if (result.success) return result.data;
    const { issues } = result.error;
    const unknown = issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? [issue] : []));
    const [problem] = describeSchemaErrors(PodManifest, manifest, result.error);
    const place = problem?.path.join(".") ?? "";
    const text = `${place}: ${problem?.detail ?? "does not fit"}`;
    for (const { path, keys } of unknown) for (const key of keys) without(manifest, [...path, key]);
    if (unknown.length > 0 && round < maxRounds) continue;
    const path = issues[0]?.path ?? [];
    // What has to be there can't be left out, and is missed in the next round.
    if (round >= maxRounds || !without(manifest, path)) {
      throw new ApiDecodeError(`Pod: ${problems.find((earlier) => earlier.startsWith(`${place}: `)) ?? text}`);
    }
    problems.push(text);
  }
}

/** In a status null is a value, for unknown times. */
function wholeManifest(value: object): object {
  const { status, ...rest } = value as { readonly status?: unknown };
  return { ...(asSent(rest) as object), status, apiVersion: "v1", kind: "Pod" };
}

/** Removes a value; false: it does not exist. */
function without(manifest: unknown, path: readonly PropertyKey[]): boolean {
  const key = path.at(-1);
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((here, part) => (isObject(here) ? Reflect.get(here, part) : undefined), manifest);
  if (key === undefined || !isObject(parent) || Array.isArray(parent)) return false;
  return Object.hasOwn(parent, key) && Reflect.deleteProperty(parent, key);
}

/**
 * What Go's types and numbers mean: a field that is null is not set, and of an int64 that a number here can't hold
 * exactly the nearest that it can is as good.
 */
function asSent(value: unknown): unknown {
  if (typeof value === "number") {
    return Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  }
  if (Array.isArray(value)) return value.map(asSent);
  if (!isObject(value)) return value;
  const set = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(set.map(([name, field]) => [name, asSent(field)]));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
