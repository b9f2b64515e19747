import assert from "node:assert/strict";
import type { PodStatus } from "../../src/api/status.ts";
import type { ApiPod } from "../../src/sources/api-pod.ts";
import { StatusManager } from "../../src/status/status-manager.ts";
import { StatusSync } from "../../src/status/status-sync.ts";
import { podWith } from "./pods.ts";
import { ScriptedKube } from "./scripted-kube.ts";
import { MemoryRecorder, silentLog } from "./sources.ts";

export const cause = { code: "Resync", message: "the test says so" } as const;
export const ready = (status: "True" | "False") => ({
  type: "Ready",
  status,
  lastProbeTime: null,
  lastTransitionTime: null,
});
export const running: PodStatus = { phase: "Running", conditions: [ready("True")] };
export const pending: PodStatus = { phase: "Pending", conditions: [ready("False")] };

export function apiPod(name: string, more: Partial<ApiPod["metadata"]> = {}, status?: PodStatus): ApiPod {
  const metadata = { name, uid: `uid-${name}`, resourceVersion: "10", ...more };
  return {
    ...podWith({ containers: [{ name: "c" }] }, metadata),
    status,
    unsupported: "",
    isPartial: false,
    definition: "",
  };
}

/** The server's response to a patch. */
export function answer(pod: ApiPod, status: PodStatus, resourceVersion: string): object {
  const { metadata, spec } = pod;
  return { metadata: { ...metadata, resourceVersion }, spec, status };
}

export class StatusWorld {
  readonly kube = new ScriptedKube();
  readonly journal = new MemoryRecorder();
  readonly statuses = new StatusManager(this.journal);
  readonly sync: StatusSync;
  /** Pods whose conditions others have changed. */
  readonly changed: string[] = [];
  /** Mirror pods whose status was rejected. */
  readonly refused: string[] = [];
  /** Hashes of static pods' manifests, by UID. */
  readonly hashes = new Map([["static-uid", "hash"]]);
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  constructor() {
    const { kube, journal, statuses } = this;
    this.sync = new StatusSync({
      ...{ client: kube.client(), clock: kube.clock, journal, log: silentLog, statuses },
      conditionsChanged: (uid) => this.changed.push(uid),
      mirrorRefused: (uid) => this.refused.push(uid),
      manifestHash: (uid) => this.hashes.get(uid),
    });
    this.#ended = this.sync.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("the test is over"));
    await this.#ended;
    assert.deepEqual(this.kube.clock.waits, []);
  }
}

export async function withWorld(work: (world: StatusWorld) => Promise<void>): Promise<void> {
  const world = new StatusWorld();
  await work(world);
  await world.stop();
}
