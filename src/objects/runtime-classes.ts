import * as z from "zod";
import { decoder, type Resource } from "../api-client/resource.ts";

/** node.k8s.io/v1 RuntimeClass (KEP-585), the part for nodes. */
const RuntimeClass = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string().optional(), resourceVersion: z.string().optional() }),
  handler: z.string(),
});
export type RuntimeClass = z.infer<typeof RuntimeClass>;

export const runtimeClasses: Resource<RuntimeClass> = {
  base: "/apis/node.k8s.io/v1",
  plural: "runtimeclasses",
  kind: "RuntimeClass",
  decode: decoder(RuntimeClass, "RuntimeClass"),
};
