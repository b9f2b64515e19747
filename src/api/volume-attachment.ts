import * as z from "zod";
import { StringMap } from "./meta.ts";

const Text = z.string().optional();

/** storage.k8s.io/v1 VolumeAttachment as a kubelet reads it. */
export const VolumeAttachment = z.looseObject({
  metadata: z.looseObject({ name: z.string(), uid: Text, resourceVersion: Text, deletionTimestamp: Text }),
  status: z
    .looseObject({
      attached: z.boolean().optional(),
      attachmentMetadata: StringMap.optional(),
      attachError: z.looseObject({ time: Text, message: Text, errorCode: z.int().optional() }).optional(),
    })
    .optional(),
});
export type VolumeAttachment = z.infer<typeof VolumeAttachment>;
