import { eventConversion } from "./events.ts";
import { namespaceStrategy, nodeStrategy } from "./nodes.ts";
import { podStrategy } from "./pods.ts";
import type { Resource, Strategy } from "./resource.ts";
import {
  certificateRequestStrategy,
  claimStrategy,
  configMapStrategy,
  csiNodeStrategy,
  eventStrategy,
  leaseStrategy,
  plainStrategy,
  secretStrategy,
  serviceStrategy,
  specAndStatusStrategy,
} from "./strategies.ts";

interface Options {
  readonly shortNames?: readonly string[];
  readonly subresources?: readonly string[];
  readonly selectable?: readonly string[];
  readonly strategy?: Strategy;
  readonly storage?: string;
  readonly conversion?: Resource["conversion"];
  readonly singular?: string;
}

function resource(
  apiVersion: string,
  plural: string,
  kind: string,
  namespaced: boolean,
  options: Options = {},
): Resource {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  return {
    group: group ?? "",
    version: version ?? "",
    plural,
    singular: options.singular ?? kind.toLowerCase(),
    kind,
    shortNames: options.shortNames ?? [],
    namespaced,
    subresources: options.subresources ?? [],
    selectable: options.selectable ?? [],
    strategy: options.strategy ?? plainStrategy,
    storage: options.storage ?? (group === "" ? plural : `${plural}.${group}`),
    ...(options.conversion === undefined ? {} : { conversion: options.conversion }),
  };
}

const eventFields = (object: string, message: string): readonly string[] => [
  ...["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map(
    (each) => `${object}.${each}`,
  ),
  "reason",
  "type",
  ...(message === "source" ? ["source", "reportingComponent"] : ["reportingController"]),
];

const podSubresources = [
  "status",
  "ephemeralcontainers",
  "resize",
  "binding",
  "eviction",
  "log",
  "exec",
  "attach",
  "portforward",
  "proxy",
];
const podFields = [
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.schedulerName",
  "spec.serviceAccountName",
  "spec.hostNetwork",
  "status.phase",
  "status.podIP",
  "status.nominatedNodeName",
];
const withStatus = { subresources: ["status"], strategy: specAndStatusStrategy };

/** Every stored resource. */
export const catalog: readonly Resource[] = [
  resource("v1", "pods", "Pod", true, {
    shortNames: ["po"],
    subresources: podSubresources,
    selectable: podFields,
    strategy: podStrategy,
  }),
  resource("v1", "nodes", "Node", false, {
    shortNames: ["no"],
    subresources: ["status", "proxy"],
    selectable: ["spec.unschedulable"],
    strategy: nodeStrategy,
  }),
  resource("v1", "namespaces", "Namespace", false, {
    shortNames: ["ns"],
    subresources: ["status", "finalize"],
    selectable: ["status.phase"],
    strategy: namespaceStrategy,
  }),
  resource("v1", "events", "Event", true, {
    shortNames: ["ev"],
    selectable: eventFields("involvedObject", "source"),
    strategy: eventStrategy,
  }),
  resource("v1", "configmaps", "ConfigMap", true, { shortNames: ["cm"], strategy: configMapStrategy }),
  resource("v1", "secrets", "Secret", true, { selectable: ["type"], strategy: secretStrategy }),
  resource("v1", "serviceaccounts", "ServiceAccount", true, { shortNames: ["sa"], subresources: ["token"] }),
  resource("v1", "services", "Service", true, {
    shortNames: ["svc"],
    subresources: ["status"],
    selectable: ["spec.clusterIP", "spec.type"],
    strategy: serviceStrategy,
  }),
  resource("v1", "endpoints", "Endpoints", true, { shortNames: ["ep"], singular: "endpoints" }),
  resource("v1", "persistentvolumes", "PersistentVolume", false, { shortNames: ["pv"], ...withStatus }),
  resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, {
    shortNames: ["pvc"],
    subresources: ["status"],
    strategy: claimStrategy,
  }),
  resource("v1", "limitranges", "LimitRange", true, { shortNames: ["limits"] }),
  resource("v1", "resourcequotas", "ResourceQuota", true, { shortNames: ["quota"], ...withStatus }),
  resource("coordination.k8s.io/v1", "leases", "Lease", true, { strategy: leaseStrategy }),
  resource("events.k8s.io/v1", "events", "Event", true, {
    shortNames: ["ev"],
    selectable: eventFields("regarding", "note"),
    storage: "events",
    conversion: eventConversion,
  }),
  resource("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", false),
  resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", false, { shortNames: ["pc"] }),
  resource("certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest", false, {
    shortNames: ["csr"],
    subresources: ["status", "approval"],
    selectable: ["spec.signerName"],
    strategy: certificateRequestStrategy,
  }),
  resource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", true, { shortNames: ["pdb"], ...withStatus }),
  resource("storage.k8s.io/v1", "csinodes", "CSINode", false, { strategy: csiNodeStrategy }),
  resource("storage.k8s.io/v1", "csidrivers", "CSIDriver", false),
  resource("storage.k8s.io/v1", "storageclasses", "StorageClass", false, { shortNames: ["sc"] }),
  resource("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", false, withStatus),
  resource("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", true),
  resource("resource.k8s.io/v1", "resourceslices", "ResourceSlice", false, {
    selectable: ["spec.nodeName", "spec.driver"],
  }),
];

/** The resource of a path, or undefined. */
export function findResource(group: string, version: string, plural: string): Resource | undefined {
  return catalog.find((each) => each.group === group && each.version === version && each.plural === plural);
}

/** The resource of a plural, such as `pods`; the core group takes precedence. @throws Error if unknown */
export function resourceNamed(plural: string): Resource {
  const found = catalog.find((each) => each.plural === plural);
  if (found === undefined) throw new Error(`the test API server has no resource ${plural}`);
  return found;
}

/** The resource of an object. */
export function resourceOf(apiVersion: string, kind: string): Resource | undefined {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  return catalog.find((each) => each.group === group && each.version === version && each.kind === kind);
}
