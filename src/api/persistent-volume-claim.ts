import * as z from "zod";
import { StringMap } from "./meta.ts";
import { VolumeMode } from "./persistent-volume.ts";

const Text = z.string().optional();

const ClaimCondition = z.looseObject({
  type: z.string(),
  status: z.string(),
  lastProbeTime: z.string().nullish(),
  lastTransitionTime: z.string().nullish(),
  reason: Text,
  message: Text,
});

/** corev1.PersistentVolumeClaim as a kubelet reads it. */
export const PersistentVolumeClaim = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    namespace: Text,
    uid: Text,
    resourceVersion: Text,
    deletionTimestamp: Text,
    finalizers: z.array(z.string()).optional(),
    ownerReferences: z.array(z.looseObject({ uid: z.string(), controller: z.boolean().optional() })).optional(),
    annotations: StringMap.optional(),
  }),
  spec: z.looseObject({
    volumeName: Text,
    volumeMode: VolumeMode.optional(),
    accessModes: z.array(z.string()).optional(),
    resources: z.looseObject({ requests: StringMap.optional() }).optional(),
  }),
  status: z
    .looseObject({
      phase: Text,
      capacity: StringMap.optional(),
      conditions: z.array(ClaimCondition).optional(),
      allocatedResources: StringMap.optional(),
      allocatedResourceStatuses: StringMap.optional(),
    })
    .optional(),
});
export type PersistentVolumeClaim = z.infer<typeof PersistentVolumeClaim>;
