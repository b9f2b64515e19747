import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { JournalEntry, JournalInput } from "../journal/entry.ts";
import type { NameOf } from "../journal/vocabulary.ts";
import { eventsOf } from "./entry-events.ts";

const pod = { namespace: "ns", name: "web", uid: podUid("u") };
const cause = { code: "ManifestRemoved", message: "somebody deleted the pod" } as const;

function allTold(input: JournalInput): string[] {
  const entry: JournalEntry = { seq: 1, time: 0, pod, ...input };
  return eventsOf(entry).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
}

function told(input: JournalInput): string | undefined {
  const [event, ...more] = allTold(input);
  assert.deepEqual(more, []);
  return event;
}
const outcome = (what: NameOf<"outcome">, result: "done" | "failed", message = "it broke"): JournalInput => {
  return { kind: "outcome", what, result, message, container: "c" };
};

test("container events have upstream's reasons and messages", () => {
  assert.equal(told(outcome("CreateContainer", "done")), "Normal Created: Container created");
  assert.equal(told(outcome("StartContainer", "done")), "Normal Started: Container started");
  assert.equal(told(outcome("StartContainer", "failed")), "Warning Failed: Error: it broke");
  const misconfigured = { kind: "observation", what: "ContainerConfigError", container: "c" } as const;
  assert.equal(
    told({ ...misconfigured, message: 'configmap "settings" not found' }),
    'Warning Failed: Error: configmap "settings" not found',
  );
  assert.equal(
    told({ kind: "decision", what: "BackOff", message: "waits", container: "c" }),
    "Warning BackOff: Back-off restarting failed container c in pod web_ns(u)",
  );
  assert.equal(
    told({ kind: "observation", what: "Unhealthy", message: "readiness probe failed: no", container: "c" }),
    "Warning Unhealthy: Readiness probe failed: no",
  );
  assert.equal(
    told(outcome("PostStartHook", "failed", "exited with code 1")),
    "Warning FailedPostStartHook: PostStartHook failed: exited with code 1",
  );
  for (const what of ["CgroupV1", "CheckLimitsForResolvConf"] as const) {
    assert.equal(told({ kind: "note", what, message: "as it is" }), `Warning ${what}: as it is`);
  }
  const fallback = { kind: "observation", what: "LifecycleHTTPFallback", message: "as it is" } as const;
  assert.equal(told(fallback), "Warning LifecycleHTTPFallback: as it is");
});

test("a failed certificate request is an event with its reason", () => {
  const message = "no new serving certificate: request node-csr-x was denied";
  assert.equal(
    told({ kind: "note", what: "CertificateNotIssued", message }),
    "Warning CertificateNotIssued: No new serving certificate: request node-csr-x was denied",
  );
});

test("failed garbage collection is an event with its reason", () => {
  const failed = { kind: "note", what: "ContainerGCFailed", message: "the runtime does not answer" } as const;
  assert.equal(told(failed), "Warning ContainerGCFailed: The runtime does not answer");
});

test("every kill has one event with its reason: at its beginning, not at the stop signal", () => {
  const killing = (eventMessage: string): JournalInput => {
    return { kind: "decision", what: "Killing", message: "stopping", container: "c", cause, data: { eventMessage } };
  };
  assert.equal(told(killing("Stopping container c")), "Normal Killing: Stopping container c: somebody deleted the pod");
  assert.equal(
    told(killing("Container c failed liveness probe, will be restarted")),
    "Normal Killing: Container c failed liveness probe, will be restarted: somebody deleted the pod",
  );
  assert.deepEqual(allTold({ kind: "action", what: "StopContainer", message: "stop", container: "c", cause }), []);
});

test("messages of image managers and admission become events unchanged", () => {
  const image = { kind: "decision", container: "c" } as const;
  assert.deepEqual(
    allTold({ ...image, what: "ImagePullBackOff", message: "Back-off pulling", data: { event: "BackOff" } }),
    ["Normal BackOff: Back-off pulling", "Warning Failed: Error: ImagePullBackOff"],
  );
  assert.deepEqual(
    allTold({ ...image, what: "InvalidImageName", message: "no name", data: { event: "InspectFailed" } }),
    ["Warning InspectFailed: No name", "Warning Failed: Error: InvalidImageName"],
  );
  const shown = { kind: "observation", what: "ContainerStateChanged", message: "it waits", container: "c" } as const;
  assert.deepEqual(allTold({ ...shown, data: { reason: "ErrImagePull" } }), [], "told with the pull already");
  const pull = { kind: "outcome", what: "PullImage", message: "Failed to pull" } as const;
  assert.deepEqual(allTold({ ...pull, result: "failed", data: { event: "Failed", reason: "ErrImagePull" } }), [
    "Warning Failed: Failed to pull",
    "Warning Failed: Error: ErrImagePull",
  ]);
  assert.equal(
    told({ ...image, what: "ImagePresent", message: "it is present", data: { event: "Pulled" } }),
    "Normal Pulled: It is present",
  );
  assert.equal(
    told({ kind: "decision", what: "NodePorts", message: "Pod was rejected: port 80 is taken" }),
    "Warning NodePorts: port 80 is taken",
  );
  const message = "the pod waits for other pods to stop: Node didn't have enough resource: cpu";
  assert.equal(
    told({ kind: "decision", what: "AdmissionWaits", message }),
    "Normal AdmissionWaits: The pod waits for other pods to stop: Node didn't have enough resource: cpu",
  );
});

test("resize events are upstream's, and the journal explains them", () => {
  const eventMessage = 'Pod resize started: {"containers":[{"name":"c","resources":{}}],"generation":2}';
  assert.equal(
    told({ kind: "decision", what: "ResizeStarted", message: "the pod gets it", data: { eventMessage } }),
    `Normal ResizeStarted: ${eventMessage}`,
  );
});

test("sandboxes have events when they change or fail", () => {
  const make = (attempt: number): JournalInput => {
    return { kind: "action", what: "RunPodSandbox", message: "m", cause, data: { attempt } };
  };
  assert.equal(told(make(0)), undefined);
  assert.match(told(make(1)) ?? "", /^Normal SandboxChanged: /);
  assert.equal(
    told(outcome("RunPodSandbox", "failed")),
    "Warning FailedCreatePodSandBox: Failed to create pod sandbox: it broke",
  );
  assert.equal(
    told({ kind: "observation", what: "SandboxConfigError", message: "no such class", cause }),
    "Warning FailedCreatePodSandBox: Failed to create pod sandbox: no such class",
  );
});

test("a failed volume refresh has the event of a failed mount", () => {
  for (const what of ["MountVolume", "UpdateVolume"] as const) {
    assert.equal(told(outcome(what, "failed")), "Warning FailedMount: It broke");
  }
});

test("most entries have no event", () => {
  assert.equal(told({ kind: "input", what: "PodAdded", message: "m" }), undefined);
  assert.equal(told({ kind: "decision", what: "ComputePodActions", message: "m" }), undefined);
  assert.equal(told(outcome("RemoveContainer", "done")), undefined);
});

test("failures around containers have upstream's reasons", () => {
  const failed = (what: NameOf<"observation">): string | undefined =>
    told({ kind: "observation", what, message: "no room", cause });
  assert.equal(failed("SandboxConfigError"), "Warning FailedCreatePodSandBox: Failed to create pod sandbox: no room");
  assert.equal(
    failed("FailedPodSandBoxStatus"),
    "Warning FailedPodSandBoxStatus: Unable to get pod sandbox status: no room",
  );
  assert.equal(failed("FailedMakePodDataDirectories"), "Warning Failed: error making pod data directories: no room");
  assert.equal(
    failed("FailedCreatePodContainer"),
    "Warning FailedCreatePodContainer: unable to ensure pod container exists: no room",
  );
  assert.equal(failed("FailedKillPod"), "Warning FailedKillPod: error killing pod: no room");
  assert.equal(failed("FailedSync"), "Warning FailedSync: No room");
  for (const what of ["DNSConfigForming", "MissingClusterDNS"] as const) {
    assert.equal(told({ kind: "note", what, message: "3 are kept" }), `Warning ${what}: 3 are kept`);
  }
});

test("a missing cluster DNS is an event of the pod and of the node", () => {
  const nodeMessage = "kubelet does not have ClusterDNS IP configured";
  const message = `pod: "p". ${nodeMessage}`;
  const entry: JournalEntry = {
    seq: 1,
    time: 0,
    pod,
    kind: "note",
    what: "MissingClusterDNS",
    message,
    data: { nodeMessage },
  };
  const [node, ofPod] = eventsOf(entry);
  assert.deepEqual(
    [node?.pod, node?.type, node?.reason, node?.message],
    [undefined, "Warning", entry.what, nodeMessage],
  );
  assert.deepEqual([ofPod?.pod, ofPod?.message], [pod, message]);
});

test("an eviction's event is upstream's, with its annotations", () => {
  const eventMessage = "The node was low on resource: memory. ";
  const annotations = { starved_resource: "memory" };
  const entry: JournalEntry = {
    ...{ seq: 1, time: 0, pod, kind: "decision", what: "PodEvicted", message: "evicted for memory.available", cause },
    data: { signal: "memory.available", eventMessage, annotations },
  };
  assert.deepEqual(eventsOf(entry), [
    { type: "Warning", reason: "Evicted", message: eventMessage, pod, container: undefined, annotations },
  ]);
  assert.equal(
    told({ kind: "decision", what: "EvictionThresholdMet", message: "Attempting to reclaim memory" }),
    "Warning EvictionThresholdMet: Attempting to reclaim memory",
  );
});

test("Events of the pull of a volume's image are about the pod, and the waiting container has one of its own", () => {
  const entry = (input: JournalInput): JournalEntry => ({ seq: 1, time: 0, pod, container: "c", ...input });
  const events = (input: JournalInput): (string | undefined)[][] =>
    eventsOf(entry(input)).map(({ reason, message, container }) => [container, reason, message]);
  const pull = { kind: "outcome", what: "PullImage", message: "Failed to pull", result: "failed" } as const;
  const data = { event: "Failed", reason: "ErrImagePull", volume: "v" };
  assert.deepEqual(events({ ...pull, data }), [[undefined, "Failed", "Failed to pull"]]);
  const missing = { kind: "observation", what: "VolumeImageMissing", message: "no image" } as const;
  assert.deepEqual(events({ ...missing, data: { volume: "v", reason: "ErrImagePull" } }), [
    ["c", "Failed", "Error: ErrImagePull"],
  ]);
});
