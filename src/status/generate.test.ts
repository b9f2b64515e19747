import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import {
  inputsBehind,
  readySandbox,
  runtimeContainer,
  runtimeStatus,
  statusInputs,
} from "../../test/support/runtime-status.ts";
import { recordedPods, vectorText } from "../../test/support/vectors.ts";
import type { Pod } from "../api/pod.ts";
import type { PodCondition, PodStatus } from "../api/status.ts";
import { podUid } from "../base/ids.ts";
import type { ContainerStatus as RuntimeContainerStatus } from "../runtime/status/pod-status.ts";
import type { CauseCode } from "../journal/vocabulary.ts";
import type { Failure, StatusInputs } from "./inputs.ts";
import { generateAPIPodStatus } from "./generate.ts";
import { isTerminalPhase } from "./phase.ts";

/** For transitions whose time is not in the recording. */
function withoutTimes(status: PodStatus): PodStatus {
  return { ...status, conditions: status.conditions?.map((each) => ({ ...each, lastTransitionTime: null })) ?? [] };
}

for (const pod of recordedPods()) {
  test(`the status of ${pod.metadata.name} equals the Go kubelet's`, () => {
    const recorded = pod.status;
    const generated = generateAPIPodStatus({
      ...inputsBehind(pod, recorded, undefined),
      now: Date.parse(recorded.startTime ?? ""),
    });
    assert.deepEqual(withoutTimes(generated), withoutTimes(recorded));
  });
}

interface StreamEntry {
  readonly name: string;
  readonly generation: number;
  readonly status: PodStatus;
}

const stream = vectorText("pod-status-stream.jsonl")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as StreamEntry);

/** The pods of the recording as the API server gave them: defaulted, with the token's volume mounted. */
const clusterPods = new Map(
  parseAllDocuments(vectorText("manifests/cluster-pods.yaml")).map((document) => {
    const pod = document.toJS() as Pod;
    return [pod.metadata.name, pod];
  }),
);

function clusterPod({ name, generation, status }: StreamEntry): Pod {
  const pod = clusterPods.get(name);
  if (pod === undefined) throw new Error(`no manifest for ${name}`);
  const uid = /pod=\w+\((.+)\)/.exec(JSON.stringify(status))?.[1] ?? "u";
  const withMounts = (kind: "containerStatuses" | "initContainerStatuses", containers: Pod["spec"]["containers"]) =>
    containers.map((container) => {
      const mounts = status[kind]?.find((each) => each.name === container.name)?.volumeMounts ?? [];
      const requests = { ...container.resources?.limits, ...container.resources?.requests };
      return {
        ...container,
        resources: { ...container.resources, requests },
        volumeMounts: mounts.map((mount) => ({ name: mount.name, mountPath: mount.mountPath, readOnly: true })),
      };
    });
  return {
    metadata: { ...pod.metadata, uid: podUid(uid), generation },
    spec: {
      ...pod.spec,
      containers: withMounts("containerStatuses", pod.spec.containers),
      initContainers: withMounts("initContainerStatuses", pod.spec.initContainers ?? []),
    },
  };
}

/**
 * Known differences: the Go kubelet reads status.resources from the pod's cgroup, whose "no limit" on cgroup v1 is a
 * huge number; and it reports a sandbox a moment before the sandbox's address.
 */
function comparable(status: PodStatus, withAddress: boolean): PodStatus {
  const { podIP, podIPs, resources: _, ...rest } = status;
  return withAddress ? { ...rest, ...(podIP && { podIP }), ...(podIPs && { podIPs }) } : rest;
}

/** The Go kubelet writes the result of a startup probe into the last status, before its consequences. */
function isHalfUpdated({ status }: StreamEntry): boolean {
  return (status.initContainerStatuses ?? []).some((each) => each.name === "side" && each.started && !each.ready);
}

for (const name of ["crash", "done", "noimage", "badconfig", "oom", "full", "liveness"]) {
  test(`pod ${name} goes through the statuses that the Go kubelet showed`, () => {
    // The first entry is the API server's own; entries after a deletion do not depend on the containers alone.
    const entries = stream.filter((entry) => entry.name === name && entry.generation === 1).slice(1);
    let previous: PodStatus | undefined;
    for (const entry of entries.filter((each) => !isHalfUpdated(each))) {
      const generated = generateAPIPodStatus(inputsBehind(clusterPod(entry), entry.status, previous));
      const expected = comparable(entry.status, entry.status.podIP !== undefined);
      const actual = comparable(generated, entry.status.podIP !== undefined);
      // The Go kubelet delays a terminal phase until the pod's worker has ended; its conditions come earlier.
      const heldBack = isTerminalPhase(actual.phase) && expected.phase === "Running";
      assert.deepEqual(heldBack ? { ...actual, phase: "Running" } : actual, expected);
      previous = generated;
    }
    assert.ok(entries.length > 1);
  });
}

const pod: Pod = {
  metadata: { name: "p", namespace: "ns", uid: podUid("u") },
  spec: { containers: [{ name: "c", image: "image" }], restartPolicy: "OnFailure" },
};

/** An ending with which the node fails a pod, such as an eviction. */
function failing(code: CauseCode, message: string, outcome: Failure["outcome"] = "failed"): Failure {
  return { cause: { code, message }, outcome };
}

test("a new pod waits for its containers to be created", () => {
  const status = generateAPIPodStatus(statusInputs(pod, { podStatus: runtimeStatus(pod, [], []), now: 1999 }));
  assert.equal(status.phase, "Pending");
  assert.equal(status.startTime, "1970-01-01T00:00:01Z");
  assert.deepEqual(status.containerStatuses?.[0]?.state, { waiting: { reason: "ContainerCreating" } });
});

test("a pod that the node ends is Failed with the node's message, permanently", () => {
  const failure = failing("Evicted", "The node was low on resource: memory.");
  const podStatus = runtimeStatus(pod, [runtimeContainer("c")]);
  const failed = generateAPIPodStatus(statusInputs(pod, { podStatus, failure }));
  assert.deepEqual(
    [failed.phase, failed.reason, failed.message],
    ["Failed", failure.cause.code, failure.cause.message],
  );
  const done = runtimeContainer("c", { state: "exited", reason: "Completed" });
  const later = generateAPIPodStatus(statusInputs(pod, { podStatus: runtimeStatus(pod, [done]), previous: failed }));
  assert.deepEqual([later.phase, later.reason], ["Failed", "Evicted"]);
  const other = failing("DeadlineExceeded", "");
  assert.equal(
    generateAPIPodStatus(statusInputs(pod, { podStatus, previous: failed, failure: other })).reason,
    "Evicted",
  );
});

test("a pod that the node cuts short has succeeded without a reason if its containers exit with 0", () => {
  const [exited, killed] = [{ state: "exited" } as const, { state: "exited", exitCode: 137 } as const];
  const told = (outcome: Failure["outcome"], ...ends: Partial<RuntimeContainerStatus>[]): unknown[] => {
    const containers = ends.map((_, index) => ({ name: `c${index}` }));
    const own: Pod = { ...pod, spec: { containers } };
    const podStatus = runtimeStatus(
      own,
      ends.flatMap((end, index) => (end.state === undefined ? [] : runtimeContainer(`c${index}`, end))),
    );
    const failure = failing("Preempting", "Preempted in order to admit critical pod", outcome);
    const status = generateAPIPodStatus(statusInputs(own, { podStatus, failure, podIsTerminal: true }));
    return [status.phase, status.reason, status.message !== undefined];
  };
  const failed = ["Failed", "Preempting", true];
  assert.deepEqual(told("cutShort", exited, exited), ["Succeeded", undefined, false]);
  assert.deepEqual(told("cutShort", exited, killed), failed);
  assert.deepEqual(told("cutShort", exited, {}), failed, "one of them has never run");
  assert.deepEqual(told("cutShort", {}), failed);
  assert.deepEqual(told("failed", exited, exited), failed);
});

test("a pod that ended before it started has no waiting containers, so that its reason is visible", () => {
  const podStatus = runtimeStatus(pod, [], []);
  const failure = failing("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
  const failed = generateAPIPodStatus(statusInputs(pod, { podStatus, failure }));
  assert.deepEqual([failed.phase, failed.reason, failed.containerStatuses], ["Failed", "DeadlineExceeded", undefined]);
  assert.equal(failed.conditions?.find(({ type }) => type === "Ready")?.reason, "PodFailed");
  assert.deepEqual(generateAPIPodStatus(statusInputs(pod, { podStatus, previous: failed })), failed);
});

test("the status of a rejected pod has only the reason, and the conditions of others", () => {
  const podStatus = runtimeStatus(pod, [], []);
  const [reason, message] = ["OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"] as const;
  const failure = failing(reason, message, "refused");
  const asking: Pod = {
    metadata: { ...pod.metadata, generation: 1 },
    spec: { ...pod.spec, containers: [{ name: "c", resources: { requests: { cpu: "100" } } }] },
  };
  const inputs = { podStatus, failure, hostIPs: ["192.0.2.2"], podIsTerminal: true };
  const failed = generateAPIPodStatus(statusInputs(asking, inputs));
  assert.deepEqual(failed, {
    ...{ observedGeneration: 1, phase: "Failed", reason, message },
    ...{ startTime: failed.startTime, qosClass: "Burstable" },
  });
  const condition = (type: string): PodCondition => ({
    ...{ type, status: "True", lastProbeTime: null, lastTransitionTime: "2026-11-20T14:02:00Z" },
  });
  const conditions = [condition("PodScheduled"), condition("example.org/gate")];
  const previous: PodStatus = { phase: "Pending", conditions };
  const scheduled = generateAPIPodStatus(statusInputs(asking, { ...inputs, previous }));
  assert.deepEqual(scheduled.conditions, [condition("example.org/gate")]);
  const after = generateAPIPodStatus(statusInputs(asking, { podStatus, previous: failed }));
  assert.deepEqual(after, failed, "so it stays over a restart");
});

test("a stopping pod ends when nothing of it runs, and is not ready before", () => {
  const failure = failing("Evicted", "The node was low on resource: memory.");
  const podStatus = runtimeStatus(pod, [runtimeContainer("c")]);
  const before = generateAPIPodStatus(statusInputs(pod, { podStatus }));
  const ready = (status: PodStatus): unknown => status.conditions?.find(({ type }) => type === "Ready")?.status;
  assert.deepEqual([before.phase, ready(before)], ["Running", "True"]);
  const ending = generateAPIPodStatus(
    statusInputs(pod, { podStatus, failure, previous: before, podIsTerminal: true, mayRun: true }),
  );
  assert.deepEqual([ending.phase, ending.reason, ready(ending)], ["Running", undefined, "False"]);
  const found = generateAPIPodStatus(statusInputs(pod, { podStatus, failure, podIsTerminal: true, mayRun: true }));
  assert.equal(found.phase, "Running", "a life that has said nothing of it yet sees it run, too");
  const begun = runtimeStatus(pod, []);
  const waiting = generateAPIPodStatus(statusInputs(pod, { podStatus: begun, failure, mayRun: true }));
  assert.equal(waiting.phase, "Pending", "nothing of it has run yet");
  const ended = runtimeStatus(pod, [runtimeContainer("c", { state: "exited" })]);
  const last = generateAPIPodStatus(statusInputs(pod, { podStatus: ended, podIsTerminal: true, mayRun: true }));
  assert.equal(last.phase, "Running", "another container of it may still run");
  const over = generateAPIPodStatus(
    statusInputs(pod, { podStatus: runtimeStatus(pod, []), failure, previous: ending, podIsTerminal: true }),
  );
  assert.deepEqual([over.phase, over.reason], ["Failed", "Evicted"]);
});

test("preemption is reported with the pod's end, replacing others' disruption condition", () => {
  const failure = { ...failing("Preempting", "Preempted in order to admit critical pod"), disruption: "for another" };
  const [runs, stopped] = [runtimeStatus(pod, [runtimeContainer("c")]), runtimeStatus(pod, [])];
  const disruption = (status: PodStatus): unknown[] =>
    (status.conditions ?? []).flatMap(({ type, status: is, reason }) => {
      return type === "DisruptionTarget" ? [`${is} ${reason}`] : [];
    });
  const evicted: PodCondition = {
    ...{ type: "DisruptionTarget", status: "False", reason: "EvictionByEvictionAPI" },
    ...{ lastProbeTime: null, lastTransitionTime: null },
  };
  for (const [others, before] of [
    [[], []],
    [[evicted], ["False EvictionByEvictionAPI"]],
  ] as const) {
    const previous = { ...generateAPIPodStatus(statusInputs(pod, { podStatus: runs })), conditions: others };
    const next = (changed: object) =>
      generateAPIPodStatus(statusInputs(pod, { failure, podIsTerminal: true, ...changed }));
    const ending = next({ podStatus: runs, previous, mayRun: true });
    assert.deepEqual(disruption(ending), before, "it still runs");
    const over = next({ podStatus: stopped, previous: ending });
    assert.deepEqual([over.phase, disruption(over)], ["Failed", ["True TerminationByKubelet"]]);
    const later = next({ podStatus: stopped, previous: { ...over, conditions: [evicted] } });
    assert.deepEqual(disruption(later), ["False EvictionByEvictionAPI"], "what others say later counts");
  }
});

test("a pod that has ended stays as it ended", () => {
  const done = runtimeContainer("c", { state: "exited", reason: "Completed" });
  const succeeded = generateAPIPodStatus(statusInputs(pod, { podStatus: runtimeStatus(pod, [done]) }));
  assert.equal(succeeded.phase, "Succeeded");
  const lost = generateAPIPodStatus(statusInputs(pod, { podStatus: runtimeStatus(pod, [], []), previous: succeeded }));
  assert.equal(lost.phase, "Succeeded");
  assert.deepEqual(lost.containerStatuses, succeeded.containerStatuses);
});

test("addresses are in the order of the node's families", () => {
  const dual = readySandbox({ ips: ["10.0.0.1", "fd00::1"] });
  const podStatus = runtimeStatus(pod, [], [dual]);
  const status = generateAPIPodStatus(statusInputs(pod, { podStatus, hostIPs: ["fd00::2", "192.0.2.2", "192.0.2.3"] }));
  assert.deepEqual(status.podIPs, [{ ip: "fd00::1" }, { ip: "10.0.0.1" }]);
  assert.deepEqual(status.hostIPs, [{ ip: "fd00::2" }, { ip: "192.0.2.2" }]);
  const onHost: Pod = { ...pod, spec: { ...pod.spec, hostNetwork: true } };
  assert.equal(generateAPIPodStatus(statusInputs(onHost, { hostIPs: ["192.0.2.2"] })).podIP, "192.0.2.2");
});

test("one address of each family is told, of a node without addresses IPv4's first", () => {
  const many = readySandbox({ ips: ["fd00:0::1", "10.0.0.1", "fd00::2", "10.0.0.2"] });
  const podStatus = runtimeStatus(pod, [], [many]);
  const told = (hostIPs: readonly string[]): unknown => {
    return generateAPIPodStatus(statusInputs(pod, { podStatus, hostIPs })).podIPs?.map(({ ip }) => ip);
  };
  assert.deepEqual(told(["fd00::ff"]), ["fd00::1", "10.0.0.1"]);
  assert.deepEqual(
    [told(["192.0.2.2"]), told([])],
    [
      ["10.0.0.1", "fd00::1"],
      ["10.0.0.1", "fd00::1"],
    ],
  );
});

test("a pod keeps its address when its sandbox is gone", () => {
  const before = generateAPIPodStatus(statusInputs(pod, { podStatus: runtimeStatus(pod, []) }));
  const podStatus = runtimeStatus(pod, [], [readySandbox({ ready: false, ips: [] })]);
  assert.equal(generateAPIPodStatus(statusInputs(pod, { podStatus, previous: before })).podIP, "10.0.0.1");
});

test("a pod whose only container was stopped to be restarted runs, whatever its policy makes of the exit code", () => {
  const ends = [["OnFailure", 0, "Completed"] as const, ["Never", 143, "Error"] as const];
  for (const [restartPolicy, exitCode, reason] of ends) {
    const own: Pod = { ...pod, spec: { restartPolicy, containers: [{ name: "c", image: "image:1" }] } };
    const stopped = runtimeContainer("c", { state: "exited", exitCode, reason });
    const inputs = statusInputs(own, { podStatus: runtimeStatus(own, [stopped]) });
    const status = generateAPIPodStatus({ ...inputs, restarting: new Set([stopped.id]) });
    assert.equal(status.phase, "Running");
    assert.equal(status.conditions?.find(({ type }) => type === "Ready")?.reason, "ContainersNotReady");
    assert.notEqual(generateAPIPodStatus(inputs).phase, "Running", "it has ended by itself");
  }
});

test("a completed pod whose containers were collected keeps the phase that an earlier run reported", () => {
  const phaseOf = (changed: Partial<StatusInputs>): string =>
    generateAPIPodStatus(statusInputs(pod, { podIsTerminal: true, podStatus: runtimeStatus(pod, [], []), ...changed }))
      .phase;
  assert.equal(phaseOf({ endedPhase: "Succeeded" }), "Succeeded");
  const sidecar = runtimeStatus(pod, [runtimeContainer("sidecar", { state: "exited", exitCode: 143 })]);
  assert.equal(phaseOf({ endedPhase: "Succeeded", podStatus: sidecar }), "Succeeded", "some of them");
  assert.notEqual(phaseOf({}), "Succeeded");
});
