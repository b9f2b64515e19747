import assert from "node:assert/strict";
import { podUid } from "../../src/base/ids.ts";
import type { Container } from "../../src/api/container.ts";
import type { Pod, PodSpec } from "../../src/api/pod.ts";
import type { PodStatus } from "../../src/api/status.ts";
import type { Room } from "../../src/kubelet/room.ts";
import { behaviourCommand } from "../../src/sim/behaviour.ts";
import { Registry } from "../../src/metrics/registry.ts";
import { RuntimeMetrics } from "../../src/metrics/runtime-metrics.ts";
import { SimClock } from "../../src/sim/clock.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { FaultWindows } from "../../src/sim/life/faults.ts";
import { usualConfig } from "../../src/sim/life/node-config.ts";
import { type SimEntry, SimNode } from "../../src/sim/life/node.ts";
import type { RoomParts } from "../../src/sim/life/node-settings.ts";
import { SimRandom } from "../../src/sim/random.ts";
import type { Rule, RuleMaker } from "../../src/sim/rules/rule.ts";
import type { RuntimeWays } from "../../src/sim/runtime-ways.ts";
import { RuntimeWorld } from "../../src/sim/runtime-world.ts";
import type { SimContainer } from "../../src/sim/world-model.ts";

/** A container that runs until it is stopped, or exits by itself. */
export function runs(name: string, more: Partial<Container> = {}): Container {
  const command = behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf: false, unstartable: false });
  return { name, image: "busybox", imagePullPolicy: "IfNotPresent", command, ...more };
}

export function ends(name: string, afterMs: number, exitCode: number, more: Partial<Container> = {}): Container {
  return runs(name, {
    command: behaviourCommand({ exitAfterMs: afterMs, exitCode, deaf: false, unstartable: false }),
    ...more,
  });
}

export function deaf(name: string, more: Partial<Container> = {}): Container {
  return runs(name, {
    command: behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf: true, unstartable: false }),
    ...more,
  });
}

/** A container that exits with 0 on its stop signal. */
export function polite(name: string, more: Partial<Container> = {}): Container {
  return runs(name, {
    command: behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf: false, polite: true, unstartable: false }),
    ...more,
  });
}

export function podOf(spec: PodSpec, uid = "uid-1", name = "web"): Pod {
  return { metadata: { name, namespace: "default", uid: podUid(uid) }, spec };
}

/** A node with a working runtime; events of its containers are recorded as `what name`. */
export class Scene {
  readonly clock = new SimClock(1_700_000_000_000);
  readonly world: RuntimeWorld;
  readonly node: SimNode;
  /** Current faults: none by default. */
  readonly faults: FaultWindows;
  /** The node's metrics. */
  readonly registry = new Registry();
  readonly seen: { readonly atMs: number; readonly what: string }[] = [];
  readonly #rules: Rule[] = [];
  readonly #resources: { allocatable: Readonly<Record<string, string>> };

  /**
   * @param allocatable limits of the node's resources
   * @param ways of its runtime, which writes logs if they are given
   * @param makeRooms additional rooms, whose metrics go into the registry
   */
  constructor(
    allocatable: Readonly<Record<string, string>> = {},
    ways?: RuntimeWays,
    makeRooms: (parts: RoomParts, registry: Registry) => readonly Room[] = () => [],
  ) {
    const files = ways && new MemoryFiles(this.clock.incarnation());
    this.world = new RuntimeWorld(this.clock, files, ways);
    this.world.images.add("busybox:latest");
    const { clock, world } = this;
    this.faults = new FaultWindows(clock, {}, () => this.node.setFaults());
    const resources = { ...usualConfig.node.resources, allocatable };
    this.#resources = resources;
    const config = { ...usualConfig, node: { ...usualConfig.node, resources } };
    const machine = { clock, world, ...(files !== undefined && { files }) };
    const time = { now: () => clock.nowMs, monotonic: () => clock.nowMs };
    const observer = new RuntimeMetrics(this.registry, new Registry(), time);
    const onEntry = (entry: SimEntry): void => {
      for (const rule of this.#rules) rule.entry?.(entry);
    };
    this.node = new SimNode({
      ...{ ...machine, config, faults: this.faults, random: new SimRandom(1), observer, onEntry },
      makeRooms: (parts) => makeRooms(parts, this.registry),
    });
    this.world.onChange(({ type, container, podUid: uid }) => {
      const name = container?.config.metadata?.name ?? uid;
      this.seen.push({ atMs: this.clock.nowMs, what: `${type} ${name}` });
    });
    this.node.start();
  }

  /** Changes the limits of the node's resources: pods are admitted by these from then on. */
  limit(allocatable: Readonly<Record<string, string>>): void {
    this.#resources.allocatable = allocatable;
  }

  async pass(ms: number): Promise<void> {
    await this.clock.run(this.clock.nowMs + ms);
  }

  /** Violations of the rule from now on, as `rule: detail`. It does not learn of removed pods. */
  judge(make: RuleMaker): readonly string[] {
    const { clock, world, node } = this;
    const broken: string[] = [];
    const rule = make({ clock, world, node, pods: node.desired, unwanted: new Map() }, (name, detail) => {
      broken.push(`${name}: ${detail}`);
    });
    this.#rules.push(rule);
    world.onChange((change) => rule.change?.(change));
    return broken;
  }

  at(what: string): number[] {
    return this.seen.filter((seen) => seen.what === what).map(({ atMs }) => atMs);
  }

  status(uid = "uid-1"): PodStatus | undefined {
    return this.node.pods().find(({ view }) => view.ref.uid === uid)?.status;
  }

  entries(...what: readonly string[]): SimEntry[] {
    return this.node.entries.filter((entry) => what.includes(entry.what));
  }

  /** Series of a counter or gauge, as `<labels> <value>`. */
  counted(name: string): string[] {
    const family = this.registry.families().find((each) => each.name === name);
    assert.ok(family !== undefined && family.type !== "histogram", name);
    return family.samples.map(({ labels, value }) => [...labels, value].join(" "));
  }

  container(name: string): SimContainer {
    const found = [...this.world.containers.values()].filter(({ config }) => config.metadata?.name === name).at(-1);
    assert.ok(found, name);
    return found;
  }
}
