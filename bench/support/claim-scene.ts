import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CsiNames, uniqueVolumeName } from "../../src/csi/names.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { makeClaim, makeDriverObject } from "../../test/support/csi-claims.ts";
import { CsiDriver } from "../../test/support/csi-driver.ts";
import type { BenchCluster } from "./cluster.ts";
import { onInterruption } from "./interruption.ts";

interface NodeObject {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly volumesInUse?: readonly string[];
    readonly volumesAttached?: readonly { readonly name: string; readonly devicePath: string }[];
  };
}

/** The tests' CSI driver on a cluster's node, and its claims, attached as a controller would or not at all. */
export class ClaimScene implements AsyncDisposable {
  readonly #cluster: BenchCluster;
  readonly #driver: CsiDriver;
  readonly #directory: string;
  readonly #names: CsiNames;
  readonly #end: () => void;
  /** When each volume was listed in volumesAttached (`performance.now()`), by its claim. */
  readonly #attachedMs = new Map<string, number>();
  #isLooking = false;
  readonly #interruption = onInterruption(() => this[Symbol.asyncDispose]());

  private constructor(cluster: BenchCluster, driver: CsiDriver, directory: string, isAttached: boolean) {
    this.#cluster = cluster;
    this.#driver = driver;
    this.#directory = directory;
    this.#names = new CsiNames(systemHashing, cluster.layout.kubeletRoot, this.#node.metadata.name);
    this.#end = isAttached ? cluster.server.registry.store.subscribe(() => this.#look()) : () => {};
  }

  static async open(cluster: BenchCluster, isAttached: boolean): Promise<ClaimScene> {
    const directory = await mkdtemp(join(tmpdir(), "podwright-bench-csi-"));
    const name = isAttached ? "attached.csi.example.org" : "plain.csi.example.org";
    const driver = new CsiDriver({ name, root: cluster.layout.kubeletRoot, directory });
    makeDriverObject(cluster, name, { attachRequired: isAttached });
    await driver.start();
    const scene = new ClaimScene(cluster, driver, directory, isAttached);
    const isListed = (node: unknown): boolean => JSON.stringify(node ?? {}).includes(`"${name}"`);
    await cluster.server.admin.until("csinodes", scene.#node.metadata.name, isListed, 60_000);
    return scene;
  }

  claim(name: string): void {
    makeClaim(this.#cluster, name, this.#driver.name);
  }

  /** When the claim's volume was attached. */
  attachedMs(claim: string): number {
    return this.#attachedMs.get(claim) ?? Number.NaN;
  }

  /** Milliseconds that the driver took for calls since a moment. */
  driverMs(sinceMs: number): number {
    const calls = this.#driver.calls.filter(({ atMs }) => atMs >= sinceMs);
    return calls.reduce((sum, { atMs, endedMs }) => sum + ((endedMs ?? atMs) - atMs), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#interruption[Symbol.dispose]();
    this.#end();
    await this.#driver[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
    if (this.#driver.violations.length > 0) throw new Error(this.#driver.violations.join("; "));
  }

  get #node(): NodeObject {
    return this.#cluster.server.admin.list("nodes")[0] as unknown as NodeObject;
  }

  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    setImmediate(() => {
      this.#isLooking = false;
      this.#attach();
    });
  }

  /** Attaches what the Node lists as in use, and detaches the rest, at once. */
  #attach(): void {
    const { volumesInUse = [], volumesAttached = [] } = this.#node.status ?? {};
    const own = volumesInUse.filter((volume) => volume.includes(this.#driver.name));
    if (own.length === volumesAttached.length && volumesAttached.every(({ name }) => own.includes(name))) return;
    const { admin } = this.#cluster.server;
    for (const volume of own) {
      const handle = volume.slice(uniqueVolumeName(this.#driver.name, "").length);
      const name = this.#names.attachment(this.#driver.name, handle);
      if (admin.find("volumeattachments", name) !== undefined) continue;
      const persistentVolumeName = handle.replace("handle-", "pv-");
      const nodeName = this.#node.metadata.name;
      const spec = { attacher: this.#driver.name, nodeName, source: { persistentVolumeName } };
      admin.create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name }, spec });
      admin.patch("volumeattachments", name, { status: { attached: true } }, { subresource: "status" });
      this.#attachedMs.set(handle.replace("handle-", ""), performance.now());
    }
    const attached = own.map((name) => ({ name, devicePath: "" }));
    admin.patch(
      "nodes",
      this.#node.metadata.name,
      { status: { volumesAttached: attached } },
      { subresource: "status" },
    );
  }
}
