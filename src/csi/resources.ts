import { decoder, type Resource } from "../api-client/resource.ts";
import { CsiDriver, CsiNode } from "../api/csi-node.ts";

export const csiNodes: Resource<CsiNode> = {
  base: "/apis/storage.k8s.io/v1",
  plural: "csinodes",
  kind: "CSINode",
  decode: decoder(CsiNode, "CSINode"),
};

export const csiDrivers: Resource<CsiDriver> = {
  base: "/apis/storage.k8s.io/v1",
  plural: "csidrivers",
  kind: "CSIDriver",
  decode: decoder(CsiDriver, "CSIDriver"),
};
