import * as z from "zod";
import { Container, EphemeralContainer, ResourceRequirements } from "../api/container.ts";
import { PodSpec } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { causeCodeOf } from "../journal/vocabulary.ts";

/** Identifies a recording, in the file's first line and in the first line of each later run that wrote to it. */
export const recordingFormat = "podwright-recording";
/** Grows when what is recorded changes; older podwrights refuse newer recordings. */
export const recordingVersion = 1;

/**
 * The fields of a container that a decision can depend on. Nothing else of it is recorded: no environment, command,
 * probe, hook or mount, and so no secret that stands in one.
 */
const containerFields = {
  name: true,
  image: true,
  restartPolicy: true,
  restartPolicyRules: true,
  resources: true,
  resizePolicy: true,
} as const;
/** The same of a pod's spec; its metadata is its name. */
const podFields = { restartPolicy: true, hostNetwork: true, resources: true } as const;

const RecordedContainer = Container.pick(containerFields);
const RecordedEphemeral = EphemeralContainer.pick({ ...containerFields, targetContainerName: true });

const RecordedPod = z.strictObject({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  spec: PodSpec.pick(podFields).extend({
    initContainers: z.array(RecordedContainer).optional(),
    containers: z.array(RecordedContainer),
    ephemeralContainers: z.array(RecordedEphemeral).optional(),
  }),
});

/** Decimal digits: JSON's numbers would lose the nanoseconds. */
const Integer = z.string().regex(/^-?\d{1,40}$/u, "not an integer");

const Sandbox = z.strictObject({
  id: z.string(),
  attempt: z.int(),
  ready: z.boolean(),
  createdAt: Integer,
  hostNetwork: z.boolean(),
  ips: z.array(z.string()),
});

/** Without messages, log paths and users: no decision uses them, and messages may quote command lines. */
const Instance = z.strictObject({
  id: z.string(),
  name: z.string(),
  sandboxId: z.string().optional(),
  state: z.enum(["created", "running", "exited", "unknown"]),
  createdAt: Integer,
  startedAt: Integer,
  finishedAt: Integer,
  exitCode: z.int(),
  reason: z.string(),
  image: z.string(),
  hash: z.string(),
  restartCount: z.int(),
  resources: z
    .strictObject({
      cpuRequest: Integer.optional(),
      cpuLimit: Integer.optional(),
      memoryLimit: Integer.optional(),
    })
    .optional(),
});

const RecordedCause: z.ZodType<Cause> = z.strictObject({
  code: z.string().transform(causeCodeOf),
  message: z.string(),
  entry: z.number().exactOptional(),
  because: z.lazy(() => RecordedCause).exactOptional(),
});

/** Answers for one container of the spec, all about its newest instance. */
const ContainerFacts = z.strictObject({
  backOffEndsAtMs: z.number().optional(),
  retryAtMs: z.number().optional(),
  unhealthy: z.strictObject({ cause: RecordedCause, graceSeconds: z.number().exactOptional() }).optional(),
  started: z.boolean().optional(),
});

/** Answers for one instance of a container. */
const InstanceFacts = z.strictObject({
  evidence: z.number().optional(),
  restartCause: RecordedCause.optional(),
  startsOver: z.boolean().optional(),
});

const Context = z.strictObject({
  nowMs: z.number(),
  busy: z.array(z.string()),
  sandboxRetryAtMs: z.number().optional(),
  sandboxBackOffEndsAtMs: z.number().optional(),
  /** By name. */
  containers: z.record(z.string(), ContainerFacts),
  /** By the runtime's id. */
  instances: z.record(z.string(), InstanceFacts),
  resize: z
    .strictObject({
      actuated: z
        .strictObject({
          containers: z.record(z.string(), ResourceRequirements),
          pod: ResourceRequirements.optional(),
        })
        .optional(),
      underWay: z.boolean(),
      retryAtMs: z.number().optional(),
      cause: RecordedCause,
    })
    .optional(),
});

const Stop = z.strictObject({
  container: z.string(),
  id: z.string(),
  graceSeconds: z.number().optional(),
  restarts: z.boolean().optional(),
  cause: RecordedCause,
});
const Start = z.strictObject({
  container: z.string(),
  kind: z.enum(["init", "sidecar", "regular", "ephemeral"]),
  attempt: z.int(),
  restart: z.boolean(),
  leftover: z.string().optional(),
  target: z.strictObject({ name: z.string(), id: z.string().optional() }).optional(),
  cause: RecordedCause,
});

/** What was decided. Containers and sandboxes stand for themselves by name and id, everything else is whole. */
const Decided = z.strictObject({
  killPod: RecordedCause.optional(),
  graces: z.array(z.strictObject({ id: z.string(), seconds: z.number() })).optional(),
  createSandbox: z.strictObject({ attempt: z.int(), cause: RecordedCause }).optional(),
  sandbox: z.string().optional(),
  restartAll: z.strictObject({ container: z.string(), id: z.string(), cause: RecordedCause }).optional(),
  stop: z.array(Stop),
  start: z.array(Start),
  wait: z.array(
    z.strictObject({
      container: z.string(),
      exited: z.string().optional(),
      untilMs: z.number(),
      cause: RecordedCause,
    }),
  ),
  resize: z
    .strictObject({
      updates: z.array(z.strictObject({ container: z.string(), id: z.string(), change: z.string() })),
      restarts: z.array(z.strictObject({ stop: Stop, start: Start })),
      cause: RecordedCause,
    })
    .optional(),
  sandboxWaitUntilMs: z.number().optional(),
});

/** One line of a recording. Times in ms are monotonic, of the life whose header came last; `time` is wall clock. */
export const DecisionLine = z.strictObject({
  time: z.number(),
  pod: RecordedPod,
  status: z.strictObject({ sandboxes: z.array(Sandbox), containers: z.array(Instance) }),
  context: Context,
  decided: Decided,
});

/** The line with which each life of podwright begins. Other fields are for people. */
export const HeaderLine = z.object({
  format: z.literal(recordingFormat),
  version: z.int(),
  podwright: z.string().optional(),
});

export type HeaderLine = z.infer<typeof HeaderLine>;
export type DecisionLine = z.infer<typeof DecisionLine>;
export type Decided = z.infer<typeof Decided>;
export type RecordedInputs = Omit<DecisionLine, "time" | "decided">;
export type RecordedContext = DecisionLine["context"];
export type RecordedInstance = z.infer<typeof Instance>;
export type RecordedSandbox = z.infer<typeof Sandbox>;

type ContainerOf<T extends { readonly name: string }> = Pick<T, Extract<keyof typeof containerFields, keyof T>>;

/** What is kept of a container. */
export function keptOfContainer(container: Container): ContainerOf<Container> {
  return kept(container, containerFields);
}

/** What is kept of a pod's spec, its containers aside. */
export function keptOfSpec(spec: PodSpec): Pick<PodSpec, keyof typeof podFields> {
  return kept(spec, podFields);
}

function kept<T extends object, K extends keyof T>(value: T, fields: Readonly<Record<K, true>>): Pick<T, K> {
  return Object.fromEntries(Object.entries(value).filter(([field]) => Object.hasOwn(fields, field))) as Pick<T, K>;
}
