import assert from "node:assert/strict";
import type { Pod } from "../../src/api/pod.ts";
import { deviceVolumes, diskDevice, inlineDriver, rawDevice } from "../../src/sim/csi/claimed-volumes.ts";
import type { SimDriver } from "../../src/sim/csi/driver.ts";
import { driverRooms } from "../../src/sim/life/driver-rooms.ts";
import { SimRandom } from "../../src/sim/random.ts";
import { devices } from "../../src/sim/rules/devices.ts";
import { drivers } from "../../src/sim/rules/drivers.ts";
import type { Rule } from "../../src/sim/rules/rule.ts";
import { ClusterScene, clusterPod } from "./sim-cluster-scene.ts";

/** A node of a cluster with CSI drivers and claims, and the rules for them. */
export class DriverScene extends ClusterScene {
  /** What was against the rules. */
  readonly broken: string[] = [];
  readonly #rules: readonly Rule[];
  #judged = 0;

  /**
   * @param hasDevices there are block volumes, disks of the node, and volumes for one pod at a time
   * @param seLinux SELinux is enabled
   */
  constructor(hasDevices = false, seLinux = false) {
    super((parts, node) => driverRooms(node, parts), {}, seLinux);
    const { clock, runtime: world, node } = this;
    this.cluster.addStorage(new SimRandom(3), false, hasDevices);
    if (hasDevices) node.disks.install(new SimRandom(5), [diskDevice, rawDevice]);
    node.drivers.install(new SimRandom(4), true);
    const scene = { clock, world, node, pods: new Map(), unwanted: new Map() };
    const broken = (rule: string, detail: string): void => void this.broken.push(`${rule}: ${detail}`);
    this.#rules = [drivers(scene, broken), devices(scene, broken)];
    for (const rule of this.#rules) {
      world.onChange((change) => rule.change?.(change));
      rule.entry?.(noEntry);
    }
  }

  /**
   * Two pods with the same volumes run, over a kill of podwright at one moment of a driver's call (as it begins, and as
   * it ends), 1 for the first.
   * @returns the number of these moments so far
   */
  async runTwo(volumes: readonly string[], killAt: number | undefined): Promise<() => number> {
    let moments = 0;
    for (const driver of this.node.drivers.all) {
      driver.onCall(() => {
        if (++moments !== killAt) return;
        this.clock.schedule("podwright to be killed", 0, () => this.node.kill());
        this.clock.schedule("podwright to be started again", 1000, () => this.node.start());
      });
    }
    this.node.start();
    for (const name of ["a", "b"]) this.cluster.want(podWithVolumes(name, ...volumes));
    await this.pass(40_000);
    assert.ok(this.runs("uid-a") && this.runs("uid-b"), `both run after a kill at ${killAt}`);
    return () => moments;
  }

  override async pass(forMs: number): Promise<void> {
    await super.pass(forMs);
    for (const entry of this.node.entries.slice(this.#judged)) for (const rule of this.#rules) rule.entry?.(entry);
    this.#judged = this.node.entries.length;
  }

  /** What is not as it should be in the end. */
  async problems(): Promise<readonly string[]> {
    for (const rule of this.#rules) await rule.atRest?.();
    const left = await Promise.all(this.#rules.map(async (rule) => (await rule.disagreements?.()) ?? []));
    return [...this.broken, ...left.flat()];
  }

  driver(name: string): SimDriver {
    const driver = this.node.drivers.named(name);
    if (driver === undefined) throw new Error(`there is no driver ${name}`);
    return driver;
  }

  /** What was done of that name, as its messages, in order. */
  done(what: string): readonly string[] {
    const actions = this.node.entries.filter((entry) => entry.kind === "action" && entry.what === what);
    return actions.map(({ message }) => message ?? "");
  }
}

const noEntry = { kind: "note", what: "PodwrightStarted", message: "", seq: 0, time: 0, atMs: 0 } as const;

/** A pod with claims, by their names, or `inline` for a volume in its spec. */
export function podWithVolumes(name: string, ...volumes: readonly string[]): Pod {
  const pod = clusterPod(name);
  const isBlock = (volume: string): boolean => deviceVolumes.some((each) => each.isBlock && each.claim === volume);
  const volumeMounts = volumes.flatMap((each) => (isBlock(each) ? [] : [{ name: each, mountPath: `/${each}` }]));
  const volumeDevices = volumes.filter(isBlock).map((each) => ({ name: each, devicePath: `/dev/${each}` }));
  return {
    ...pod,
    spec: {
      ...pod.spec,
      terminationGracePeriodSeconds: 1,
      containers: pod.spec.containers.map((container) => ({ ...container, volumeMounts, volumeDevices })),
      volumes: volumes.map((volume) =>
        volume === "inline"
          ? { name: volume, csi: { driver: inlineDriver.name } }
          : { name: volume, persistentVolumeClaim: { claimName: volume } },
      ),
    },
  };
}
