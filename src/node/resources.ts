import { decoder, type Resource } from "../api-client/resource.ts";
import { Lease, NodeObject } from "../api/node.ts";

export const nodes: Resource<NodeObject> = {
  base: "/api/v1",
  plural: "nodes",
  kind: "Node",
  decode: decoder(NodeObject, "Node"),
};

export const leases: Resource<Lease> = {
  base: "/apis/coordination.k8s.io/v1",
  plural: "leases",
  kind: "Lease",
  decode: decoder(Lease, "Lease"),
};

/** The namespace of node leases. */
export const leaseNamespace = "kube-node-lease";
