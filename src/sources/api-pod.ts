import { z } from "zod";
import { ApiDecodeError } from "../api-client/api-error.ts";
import { type Resource, withoutManagedFields } from "../api-client/resource.ts";
import { type Pod, PodManifest } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import { withDefaults } from "./defaults.ts";
import { dnsLabelProblem, dnsSubdomainProblem, podUidProblem } from "./formats.ts";
import { describeSchemaErrors } from "./schema-errors.ts";
import { findUnsupported } from "./unsupported.ts";

/** A pod of the API server. */
export interface ApiPod extends Pod {
  /** As the server has it: of an earlier life, or what others made of it. */
  readonly status: PodStatus | undefined;
  /** What of the pod this version can't do, in words; empty: nothing. */
  readonly unsupported: string;
}

/** What an earlier life wrote, as far as it has to be what it should be for anything to go on from there. */
const State = z.looseObject({
  waiting: z.looseObject({}).optional(),
  running: z.looseObject({}).optional(),
  terminated: z.looseObject({ exitCode: z.number() }).optional(),
});
const ContainerStatuses = z
  .array(z.looseObject({ name: z.string(), state: State, lastState: State, restartCount: z.number() }))
  .optional();
const Addresses = z.array(z.looseObject({ ip: z.string() })).optional();
const Status = z.looseObject({
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
 * Reads a pod of the API server. Fields that this version does not know are left out, as upstream's decoder does: a newer
 * server may have them, and they are not the pod's fault. The server has validated the rest.
 * @throws ApiDecodeError when it is no pod
 */
function decodeApiPod(value: unknown): ApiPod {
  const manifest = lenient(withoutManagedFields(value));
  const { name, namespace, uid } = manifest.metadata;
  if (!name || !namespace || !uid) throw new ApiDecodeError("Pod: has no name, namespace or UID");
  // They name directories.
  const problem = podUidProblem(uid) ?? dnsSubdomainProblem(name) ?? dnsLabelProblem(namespace);
  if (problem !== undefined) throw new ApiDecodeError(`Pod: its name, namespace or UID ${problem}`);
  const status = Status.safeParse(manifest.status);
  const unsupported = findUnsupported(manifest, "api").map(({ path, detail }) => `${path.join(".")}: ${detail}`);
  return {
    metadata: { ...manifest.metadata, name, namespace, uid },
    spec: withDefaults(manifest).spec,
    // Only kubelets write what is read of it here.
    status: status.success ? (status.data as unknown as PodStatus) : undefined,
    unsupported: unsupported.join("; "),
  };
}

export const apiPods: Resource<ApiPod> = { base: "/api/v1", plural: "pods", decode: decodeApiPod };

function lenient(value: unknown): PodManifest {
  const manifest = typeof value === "object" && value !== null ? { ...value, apiVersion: "v1", kind: "Pod" } : value;
  for (let round = 0; ; round++) {
    const result = PodManifest.safeParse(manifest);
    if (result.success) return result.data;
    const unknown = result.error.issues.filter((issue) => issue.code === "unrecognized_keys");
    if (unknown.length < result.error.issues.length || round === maxRounds) {
      const [problem] = describeSchemaErrors(PodManifest, manifest, result.error);
      throw new ApiDecodeError(`Pod: ${problem?.path.join(".") ?? ""}: ${problem?.detail ?? "does not fit"}`);
    }
    for (const { path, keys } of unknown) {
      const parent = path.reduce<unknown>(
        (here, part) => (isObject(here) ? Reflect.get(here, part) : undefined),
        manifest,
      );
      if (isObject(parent)) for (const key of keys) Reflect.deleteProperty(parent, key);
    }
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
