import * as z from "zod";
import { StringMap } from "./meta.ts";

const OptionalText = z.string().optional();

/** corev1.NodeCondition. */
const NodeCondition = z.looseObject({
  type: z.string(),
  status: z.enum(["True", "False", "Unknown"]),
  lastHeartbeatTime: z.string().nullish(),
  lastTransitionTime: z.string().nullish(),
  reason: OptionalText,
  message: OptionalText,
});

/** corev1.Node as a kubelet reads it; other fields are preserved. */
export const NodeObject = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    namespace: OptionalText,
    uid: OptionalText,
    resourceVersion: OptionalText,
    labels: StringMap.optional(),
    annotations: StringMap.optional(),
  }),
  spec: z
    .looseObject({
      unschedulable: z.boolean().optional(),
      providerID: OptionalText,
      podCIDRs: z.array(z.string()).optional(),
      taints: z.array(z.looseObject({ key: z.string(), value: OptionalText, effect: z.string() })).optional(),
    })
    .optional(),
  status: z
    .looseObject({
      conditions: z.array(NodeCondition).optional(),
      nodeInfo: z.looseObject({ bootID: OptionalText }).optional(),
      addresses: z.array(z.looseObject({ type: z.string(), address: z.string() })).optional(),
      capacity: StringMap.optional(),
      allocatable: StringMap.optional(),
      volumesInUse: z.array(z.string()).optional(),
      volumesAttached: z.array(z.looseObject({ name: z.string(), devicePath: OptionalText })).optional(),
    })
    .optional(),
});

/** coordination.k8s.io/v1 Lease. */
export const Lease = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    namespace: OptionalText,
    uid: OptionalText,
    resourceVersion: OptionalText,
    ownerReferences: z.array(z.looseObject({ uid: z.string() })).optional(),
  }),
  spec: z.looseObject({}).optional(),
});

export type NodeObject = z.infer<typeof NodeObject>;
export type NodeCondition = z.infer<typeof NodeCondition>;
export type Lease = z.infer<typeof Lease>;
