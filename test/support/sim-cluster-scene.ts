import assert from "node:assert/strict";
import { podUid } from "../../src/base/ids.ts";
import type { Pod } from "../../src/api/pod.ts";
import { type Fields, fieldsAt, listAt } from "../../src/sim/api-server/values.ts";
import type { Room } from "../../src/kubelet/room.ts";
import { Registry } from "../../src/metrics/registry.ts";
import { RuntimeMetrics } from "../../src/metrics/runtime-metrics.ts";
import { behaviourCommand } from "../../src/sim/behaviour.ts";
import { SimClock } from "../../src/sim/clock.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { SimCluster } from "../../src/sim/life/cluster.ts";
import { FaultWindows } from "../../src/sim/life/faults.ts";
import { conditionOf } from "../../src/sim/life/node-controller.ts";
import { usualConfig } from "../../src/sim/life/node-config.ts";
import type { RoomParts } from "../../src/sim/life/node-settings.ts";
import { SimNode } from "../../src/sim/life/node.ts";
import { SimRandom } from "../../src/sim/random.ts";
import { RuntimeWorld } from "../../src/sim/runtime-world.ts";
import { nameOf, type WorldChange } from "../../src/sim/world-model.ts";
import { withDefaults } from "../../src/sources/defaults.ts";

/** A node of a cluster without faults by default. */
export class ClusterScene {
  readonly clock = new SimClock(1_700_000_000_000);
  readonly runtime: RuntimeWorld;
  readonly cluster: SimCluster;
  readonly node: SimNode;
  /** Current faults between the node and its runtime. */
  readonly faults: FaultWindows;
  readonly changes: WorldChange[] = [];
  /** Of its metrics. */
  readonly registry = new Registry();
  readonly deletions: string[] = [];

  /**
   * @param makeRooms additional rooms of its node
   * @param allocatable limits of the node's resources
   * @param seLinux SELinux is enabled
   */
  constructor(
    makeRooms: (parts: RoomParts, node: SimNode) => readonly Room[] = () => [],
    allocatable: Readonly<Record<string, string>> = {},
    seLinux = false,
  ) {
    const files = new MemoryFiles(this.clock.incarnation());
    this.runtime = new RuntimeWorld(this.clock, files);
    this.runtime.images.add("busybox:latest");
    const settings = { clock: this.clock, skewMs: 0, streamsLists: true, pageSize: 500 };
    this.cluster = new SimCluster(settings, new SimRandom(1));
    const { clock, runtime: world, cluster } = this;
    this.faults = new FaultWindows(clock, {}, () => this.node.setFaults());
    const resources = { ...usualConfig.node.resources, allocatable };
    const config = { ...usualConfig, node: { ...usualConfig.node, resources, seLinux } };
    const time = { now: () => clock.nowMs, monotonic: () => clock.nowMs };
    const observer = new RuntimeMetrics(this.registry, new Registry(), time);
    const node = { clock, world, cluster, files, config, faults: this.faults, observer };
    const rooms = (parts: RoomParts): readonly Room[] => makeRooms(parts, this.node);
    this.node = new SimNode({ ...node, makeRooms: rooms, random: new SimRandom(2) });
    world.onChange((change) => this.changes.push(change));
    cluster.server.registry.store.onChange(({ resource, after, last }) => {
      if (resource === "pods" && after === undefined) this.deletions.push(last.key);
    });
  }

  async pass(forMs: number): Promise<void> {
    await this.clock.run(this.clock.nowMs + forMs);
  }

  /** Makes a pod's container crash. */
  crash(uid: string): void {
    const container = this.runtime.running(uid, "main");
    assert.ok(container, `${uid} runs`);
    this.runtime.exit(container, 1, "Error");
  }

  runs(uid: string): boolean {
    return this.runtime.running(uid, "main") !== undefined;
  }

  /** A pod's status at the server: phase, readiness, and its container's restarts. */
  told(uid: string): readonly unknown[] {
    const { value } = this.cluster.pod(uid) ?? this.cluster.mirrors()[0] ?? {};
    assert.ok(value, `the server has ${uid}`);
    const status = fieldsAt(value, "status");
    const [container] = listAt(status, "containerStatuses");
    return [status["phase"], conditionOf(value, "Ready"), container?.["restartCount"]];
  }

  /** A pod's Events, as `Type Reason: message`, in order. */
  events(uid: string): string[] {
    return this.#told((about) => about["uid"] === uid);
  }

  /** The node's Events. */
  get nodeEvents(): string[] {
    return this.#told((about) => about["kind"] === "Node");
  }

  #told(isAbout: (object: Fields) => boolean): string[] {
    const events = this.cluster.server.registry.store.list("events").map(({ value }) => value);
    const chosen = events.filter((event) => isAbout(fieldsAt(event, "involvedObject")));
    return chosen.map(({ type, reason, message }) => `${String(type)} ${String(reason)}: ${String(message)}`);
  }

  /** A pod's container states at the server. */
  containerStates(uid: string): Fields[] {
    const { value } = this.cluster.pod(uid) ?? {};
    return listAt(fieldsAt(value ?? {}, "status"), "containerStatuses").map((status) => fieldsAt(status, "state"));
  }

  /** Whether the server's Node is ready. */
  get nodeReady(): unknown {
    const [node] = this.cluster.server.registry.store.list("nodes");
    return node && conditionOf(node.value, "Ready");
  }

  /** Containers stopped since then. */
  stopped(since: number): string[] {
    const stops = this.changes.slice(since).filter(({ type }) => type === "stopping" || type === "sandboxStopped");
    return stops.map(
      ({ podUid: uid, container }) => `${uid}/${container === undefined ? "sandbox" : nameOf(container)}`,
    );
  }
}

export function clusterPod(name: string): Pod {
  const command = behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf: false, unstartable: false });
  const manifest = withDefaults({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: { containers: [{ name: "main", image: "busybox", command }] },
  });
  return { metadata: { name, namespace: "default", uid: podUid(`uid-${name}`) }, spec: manifest.spec };
}
