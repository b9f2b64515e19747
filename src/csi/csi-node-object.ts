import type { CsiNode, CsiNodeDriver } from "../api/csi-node.ts";
import type { NodeObject } from "../api/node.ts";
import { goJson } from "../base/go-json.ts";

/** A driver's response for this node (NodeGetInfo). */
export interface DriverOnNode {
  readonly name: string;
  readonly nodeId: string;
  /** Maximum number of attached volumes; 0: no limit. */
  readonly maxVolumes: bigint;
  /** Node labels from which the scheduler determines the volumes that are accessible here. */
  readonly topology: Readonly<Record<string, string>>;
}

/** The node's drivers. Entries of drivers in neither list stay unchanged. */
export interface WantedDrivers {
  readonly nodeName: string;
  /** The Node's UID: the CSINode of an earlier Node of this name is replaced. */
  readonly nodeUid: string;
  readonly installed: readonly DriverOnNode[];
  readonly removed: ReadonlySet<string>;
}

export type CsiNodeStep =
  | { readonly kind: "keep" }
  | { readonly kind: "delete" }
  /** @param isLast the object then is as desired; otherwise another step follows */
  | { readonly kind: "create" | "replace"; readonly object: object; readonly isLast: boolean };

const migratedKey = "storage.alpha.kubernetes.io/migrated-plugins";
const nodeIdKey = "csi.volume.kubernetes.io/nodeid";
const maxCount = 2 ** 31 - 1;

/** In-tree plugins that are migrated to CSI drivers, sorted as upstream. */
const migratedPlugins = [
  "kubernetes.io/aws-ebs",
  "kubernetes.io/azure-disk",
  "kubernetes.io/azure-file",
  "kubernetes.io/cinder",
  "kubernetes.io/gce-pd",
  "kubernetes.io/portworx-volume",
  "kubernetes.io/vsphere-volume",
].join(",");

/**
 * The next write that brings the CSINode to the desired state. Pure. The API server refuses to change an entry, except its
 * count: one with another node ID or other topology keys is removed first, and added anew by the next step.
 */
export function csiNodeStep(found: CsiNode | undefined, wanted: WantedDrivers): CsiNodeStep {
  const { nodeName: name, nodeUid: uid } = wanted;
  if (found === undefined) {
    const owner = { apiVersion: "v1", kind: "Node", name, uid };
    const metadata = { name, annotations: { [migratedKey]: migratedPlugins }, ownerReferences: [owner] };
    const spec = { drivers: wanted.installed.map((driver) => driverSpec(driver)) };
    return {
      kind: "create",
      object: { apiVersion: "storage.k8s.io/v1", kind: "CSINode", metadata, spec },
      isLast: true,
    };
  }
  const { metadata, spec } = found;
  const owners = metadata.ownerReferences ?? [];
  const isOwn = owners.some((owner) => owner.kind === "Node" && owner.name === name && owner.uid === uid);
  if (!isOwn) return { kind: "delete" };
  const before = spec.drivers ?? [];
  const installed = new Map(wanted.installed.map((driver) => [driver.name, driverSpec(driver)]));
  const wantedOf = (driver: CsiNodeDriver): CsiNodeDriver => installed.get(driver.name) ?? driver;
  const known = before.filter((driver) => !wanted.removed.has(driver.name) || installed.has(driver.name));
  const kept = known.filter((driver) => isSamePlace(driver, wantedOf(driver)));
  const updated = kept.map((driver) => withCount(driver, wantedOf(driver)));
  const added = [...installed.values()].filter(({ name: own }) => !known.some((driver) => driver.name === own));
  const isSame = added.length === 0 && kept.length === before.length && updated.every((each, i) => each === kept[i]);
  const annotations = metadata.annotations ?? {};
  if (isSame && annotations[migratedKey] === migratedPlugins) return { kind: "keep" };
  return {
    kind: "replace",
    object: {
      ...found,
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: { ...metadata, annotations: { ...annotations, [migratedKey]: migratedPlugins } },
      spec: { ...spec, drivers: [...updated, ...added] },
    },
    isLast: kept.length === known.length,
  };
}

function driverSpec({ name, nodeId, maxVolumes, topology }: DriverOnNode): CsiNodeDriver {
  return {
    name,
    nodeID: nodeId,
    topologyKeys: Object.keys(topology).toSorted(),
    ...(maxVolumes > 0n && { allocatable: { count: Math.min(Number(maxVolumes), maxCount) } }),
  };
}

/** Whether an entry can become the other one: the API server lets only its count change. */
function isSamePlace(before: CsiNodeDriver, after: CsiNodeDriver): boolean {
  return before.nodeID === after.nodeID && keysOf(before) === keysOf(after);
}

function keysOf({ topologyKeys }: CsiNodeDriver): string {
  return (topologyKeys ?? []).toSorted().join(", ");
}

/** The existing entry with the count of the other one; the same object if it is equal. The order of keys stays, too. */
function withCount(before: CsiNodeDriver, { allocatable }: CsiNodeDriver): CsiNodeDriver {
  if ((before.allocatable?.count ?? 0) === (allocatable?.count ?? 0)) return before;
  const { allocatable: _before, ...rest } = before;
  return allocatable === undefined ? rest : { ...rest, allocatable };
}

/**
 * Why a driver's later answer is more than another count: with another node ID or other topology keys it is another place,
 * for which the driver registers. Pure. @returns undefined: only the count may differ
 */
export function movedProblem(registered: DriverOnNode, answer: DriverOnNode): string | undefined {
  const [before, after] = [driverSpec(registered), driverSpec(answer)];
  if (isSamePlace(before, after)) return undefined;
  const placeOf = (spec: CsiNodeDriver): string =>
    `node ID ${JSON.stringify(spec.nodeID)}, topology keys [${keysOf(spec)}]`;
  return `CSI driver ${answer.name} registered with ${placeOf(before)}, and now answers ${placeOf(after)}`;
}

/** A driver's topology that conflicts with the Node's labels, in upstream's words; undefined: none. Pure. */
export function topologyCollision({ metadata }: NodeObject, { topology }: DriverOnNode): string | undefined {
  const labels = metadata.labels ?? {};
  for (const [key, value] of Object.entries(topology)) {
    const known = labels[key];
    if (known === undefined || known === value) continue;
    const [reported, existing] = [[key, value] as const, [key, known] as const].map(([k, v]) => `"${k}":"${v}"`);
    return `detected topology value collision: driver reported ${reported} but existing label is ${existing}`;
  }
  return undefined;
}

/**
 * The patch of the Node's annotation with node IDs and of its topology labels; undefined: no change. Labels of removed
 * drivers stay, as upstream.
 */
export function nodePatch(
  { metadata }: NodeObject,
  { installed, removed }: Pick<WantedDrivers, "installed" | "removed">,
): object | undefined {
  const before = metadata.annotations?.[nodeIdKey];
  const ids = new Map(Object.entries(nodeIdsOf(before)).filter(([name]) => !removed.has(name)));
  for (const { name, nodeId } of installed) ids.set(name, nodeId);
  const sorted = [...ids].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const after = ids.size === 0 ? null : goJson(Object.fromEntries(sorted));
  const topology = Object.fromEntries(installed.flatMap((driver) => Object.entries(driver.topology)));
  const labels = Object.fromEntries(
    Object.entries(topology).filter(([key, value]) => metadata.labels?.[key] !== value),
  );
  const isSame = (before ?? null) === after;
  if (isSame && Object.keys(labels).length === 0) return undefined;
  return {
    metadata: {
      ...(!isSame && { annotations: { [nodeIdKey]: after } }),
      ...(Object.keys(labels).length > 0 && { labels }),
    },
  };
}

/** An invalid annotation is replaced: only the kubelet writes it. */
function nodeIdsOf(text = "{}"): Readonly<Record<string, string>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
    return Object.fromEntries(
      Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === "string"),
    );
  } catch {
    return {};
  }
}
