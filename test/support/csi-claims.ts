import { execFileSync } from "node:child_process";
import type { Fields } from "../apiserver/objects.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { CsiDriver, type CsiDriverOptions } from "./csi-driver.ts";

/**
 * The CSIDriver of a driver that attaches nothing, sets groups of its volumes' files, and has both kinds of volumes.
 * @param spec what is otherwise
 */
export function driverObject(name: string, spec: Fields = {}): Fields {
  const usual = {
    attachRequired: false,
    fsGroupPolicy: "File",
    volumeLifecycleModes: ["Persistent", "Ephemeral"],
  };
  return { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name }, spec: { ...usual, ...spec } };
}

export function makeDriverObject({ server }: Pick<ClusterNode, "server">, name: string, spec: Fields = {}): void {
  server.admin.create(driverObject(name, spec));
}

/** A driver on the cluster's node that has its CSIDriver object. @param spec what is otherwise in that */
export async function startClusterDriver(
  cluster: ClusterNode,
  directory: string,
  spec: Fields,
  options: Partial<CsiDriverOptions>,
): Promise<CsiDriver> {
  const driver = new CsiDriver({ root: cluster.node.podwright.layout.kubeletRoot, directory, ...options });
  makeDriverObject(cluster, driver.name, spec);
  return await driver.start();
}

/** What a claim and its PersistentVolume are otherwise. */
export interface ClaimOptions {
  readonly volumeMode?: "Filesystem" | "Block";
  readonly accessModes?: readonly string[];
  readonly storage?: string;
  readonly ownerReferences?: readonly Fields[];
  /** The PersistentVolume's name. */
  readonly volume?: string;
  readonly handle?: string;
  readonly attributes?: Readonly<Record<string, string>>;
}

function sizeOf({ volumeMode, storage = volumeMode === "Block" ? "4Mi" : "1Gi" }: ClaimOptions): Fields {
  return { storage };
}

/** A PersistentVolume of the driver, and a claim of the same name that is bound to it. */
export function makeClaim(
  cluster: Pick<ClusterNode, "server">,
  name: string,
  driver: string,
  options: ClaimOptions = {},
): void {
  makeUnboundClaim(cluster, name, options);
  bindClaim(cluster, name, driver, options);
}

export function makeUnboundClaim(
  { server }: Pick<ClusterNode, "server">,
  name: string,
  options: ClaimOptions = {},
): void {
  const { volumeMode = "Filesystem", accessModes = ["ReadWriteOnce"], ownerReferences = [] } = options;
  server.admin.create({
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, namespace: "default", finalizers: ["kubernetes.io/pvc-protection"], ownerReferences },
    spec: { accessModes, volumeMode, resources: { requests: sizeOf(options) } },
  });
}

/** As the driver's provisioner and the binder leave a claim. */
export function bindClaim(
  { server }: Pick<ClusterNode, "server">,
  name: string,
  driver: string,
  options: ClaimOptions = {},
): void {
  const { volumeMode = "Filesystem", accessModes = ["ReadWriteOnce"], attributes = { a: "b" } } = options;
  const { volume = `pv-${name}`, handle = `handle-${name}` } = options;
  const capacity = sizeOf(options);
  const { uid } = server.admin.get("persistentvolumeclaims", `default/${name}`).metadata;
  server.admin.patch("persistentvolumeclaims", `default/${name}`, { spec: { volumeName: volume } });
  server.admin.create({
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: volume },
    spec: {
      accessModes,
      capacity,
      volumeMode,
      mountOptions: volumeMode === "Block" ? [] : ["noatime"],
      claimRef: { namespace: "default", name, uid },
      csi: { driver, volumeHandle: handle, volumeAttributes: attributes },
    },
  });
  const status = { phase: "Bound", accessModes, capacity };
  server.admin.patch("persistentvolumeclaims", `default/${name}`, { status }, { subresource: "status" });
}

export async function deleted({ server }: ClusterNode, pod: string): Promise<void> {
  server.admin.delete("pods", `default/${pod}`);
  await server.admin.until("pods", `default/${pod}`, (object) => object === undefined, 30_000);
}

export function volumesInUse({ server }: ClusterNode): unknown {
  return (server.admin.get("nodes", "node1") as { status?: { volumesInUse?: unknown } }).status?.volumesInUse;
}

/** What loop devices hold below a directory. */
export function loopDevicesOver(directory: string): string[] {
  return loopDevices(directory).map(({ held }) => held);
}

function loopDevices(directory: string): { readonly device: string; readonly held: string }[] {
  const columns = ["--list", "--noheadings", "--output", "NAME,BACK-FILE"];
  const table = execFileSync("losetup", columns, { encoding: "utf8" });
  return table.split("\n").flatMap((line) => {
    const [device = "", held = ""] = line.trim().split(/\s+/u);
    return held.startsWith(`${directory}/`) ? { device, held } : [];
  });
}

/** Whatever becomes of a test, no loop device stays: one over what is unmounted cannot be found any more. */
export function withoutLoopDevices(directory: string): Disposable {
  return {
    [Symbol.dispose]: () => {
      for (const { device } of loopDevices(directory)) execFileSync("losetup", ["--detach", device]);
    },
  };
}

/** As the driver's controller and its resizer leave a claim once they have made the volume larger. */
export function grow({ server }: ClusterNode, name: string, storage: string): void {
  const { admin } = server;
  admin.patch("persistentvolumeclaims", `default/${name}`, { spec: { resources: { requests: { storage } } } });
  const { spec } = admin.get("persistentvolumeclaims", `default/${name}`) as { spec?: { volumeName?: string } };
  admin.patch("persistentvolumes", spec?.volumeName ?? "", { spec: { capacity: { storage } } });
  const status = {
    allocatedResources: { storage },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
    conditions: [{ type: "FileSystemResizePending", status: "True", lastTransitionTime: null }],
  };
  admin.patch("persistentvolumeclaims", `default/${name}`, { status }, { subresource: "status" });
}

export async function grown({ server }: ClusterNode, name: string, storage: string): Promise<void> {
  const isGrown = (claim: unknown): boolean => {
    const { capacity, conditions = [] } = (claim as Claim).status ?? {};
    return capacity?.storage === storage && conditions.length === 0;
  };
  await server.admin.until("persistentvolumeclaims", `default/${name}`, isGrown, 60_000);
}

interface Claim {
  readonly status?: {
    readonly capacity?: { readonly storage?: string };
    readonly conditions?: readonly unknown[];
    readonly allocatedResourceStatuses?: object;
  };
}
