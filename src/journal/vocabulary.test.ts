import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { imageEvents } from "./vocabulary/images.ts";
import type { EventTerm, Fact, Term } from "./vocabulary/term.ts";
import { causeCodeOf, entryNameOf, facts, isRejection, termOf, terms } from "./vocabulary.ts";

const root = join(import.meta.dirname, "../..");
/** Sources that record entries: not the vocabulary, tests, or readers. */
const writers = globSync("src/**/*.ts", {
  cwd: root,
  exclude: ["**/*.test.ts", "src/journal/vocabulary/**", "src/sim/**"],
});

/** Names composed at run time, with the template of each. */
const composed: readonly (readonly [RegExp, string])[] = [
  [/^(Startup|Liveness|Readiness)ProbeFailed$/, "}ProbeFailed`"],
  [/^(Startup|Liveness|Readiness)ProbeSucceeded$/, "}ProbeSucceeded`"],
  [/^OutOf(cpu|memory|ephemeral-storage|pods)$/, "`OutOf$"],
];

/** The reasons of upstream's kubelet (pkg/kubelet, pkg/volume and staging/src/k8s.io, 1.36). */
const upstreamReasons: ReadonlySet<string> = new Set([
  ...["AlreadyMountedVolume", "FailedMapVolume", "FileSystemResizeFailed", "FileSystemResizeSuccessful"],
  ...["SuccessfulMountVolume", "VolumeResizeFailed"],
  ...["BackOff", "CgroupV1", "CheckLimitsForResolvConf", "ContainerGCFailed", "Created", "DNSConfigForming"],
  ...["DeadlineExceeded", "ErrImageNeverPull", "ExceededGracePeriod", "Failed", "FailedCreatePodContainer"],
  ...["FailedCreatePodSandBox", "FailedKillPod", "FailedMount", "FailedNodeAllocatableEnforcement"],
  ...["FailedPodSandBoxStatus", "FailedPostStartHook", "FailedPreStopHook", "FailedSync"],
  ...["FailedToRetrieveImagePullSecret", "FailedValidation", "FreeDiskSpaceFailed", "HostIPsIPFamilyMismatch"],
  ...["ImageGCFailed", "InspectFailed", "InvalidDiskCapacity", "Killing"],
  ...["LifecycleHTTPFallback", "MissingClusterDNS", "NetworkNotReady", "NodeAllocatableEnforced"],
  ...["NodeHasDiskPressure", "NodeHasInsufficientMemory", "NodeHasInsufficientPID", "NodeHasNoDiskPressure"],
  ...["NodeHasSufficientMemory", "NodeHasSufficientPID", "NodeNotReady", "NodeNotSchedulable", "NodeReady"],
  ...[
    "EvictionThresholdMet",
    "NodeSchedulable",
    "PossibleMemoryBackedVolumesOnDisk",
    "Preempting",
    "ProbeWarning",
    "Pulled",
    "Pulling",
  ],
  ...["Rebooted", "ResizeCompleted", "ResizeDeferred", "ResizeError", "ResizeInfeasible", "ResizeStarted"],
  ...["SandboxChanged", "Shutdown", "Started", "SystemOOM", "Unhealthy"],
  ...["VolumeConditionAbnormal", "VolumePermissionChangeInProgress"],
]);

/** Events that upstream does not have. */
const ownReasons: ReadonlySet<string> = new Set([
  ...[
    "AdmissionWaits",
    "CertificateNotIssued",
    "CloudMetadataFailed",
    "CredentialProviderFailed",
    "EvictionByChange",
    "OOMKilling",
  ],
]);

/** Event reasons in the vocabulary, each with the entries that produce it. */
function reasons(): ReadonlySet<string> {
  const ofTerm = ([name, term]: readonly [string, Term]): readonly string[] => {
    const events = [term.event, term.nodeEvent, term.claimEvent, term.again, term.done, term.failed, term.unknown];
    return events.flatMap((event: EventTerm | undefined) => (event === undefined ? [] : [event.reason ?? name]));
  };
  const ends = Object.entries<Fact>(facts).flatMap(([code, { end }]) =>
    end === undefined ? [] : [end.reason ?? code],
  );
  return new Set([...Object.entries<Term>(terms).flatMap(ofTerm), ...ends, ...Object.keys(imageEvents)]);
}

describe("the journal's vocabulary", () => {
  test("has no unused name", () => {
    const text = writers.map((path) => readFileSync(join(root, path), "utf8")).join("\n");
    const isRecorded = (name: string): boolean =>
      text.includes(`"${name}"`) || composed.some(([names, template]) => names.test(name) && text.includes(template));
    const standIns = new Set(["UnknownEntry", "UnknownCause"]);
    const names = [...Object.keys(terms), ...Object.keys(facts)].filter((name) => !standIns.has(name));
    assert.deepEqual(
      names.filter((name) => !isRecorded(name)),
      [],
    );
  });

  test("has no duplicates: a fact is not an entry", () => {
    const both = Object.keys(facts).filter((code) => Object.hasOwn(terms, code));
    assert.deepEqual(both, []);
  });

  test("has only upstream's Event reasons, and each of upstream's that podwright uses", () => {
    const told = reasons();
    const refusals = new Set(Object.keys(terms).filter(isRejection));
    const foreign = [...told].filter(
      (reason) => ![upstreamReasons, ownReasons, refusals].some((set) => set.has(reason)),
    );
    assert.deepEqual(foreign, [], "Events that neither upstream has nor podwright's documents name");
    assert.deepEqual([...upstreamReasons.difference(told)], [], "Events that are told no more");
  });

  test("reads a resource name of a cluster as an insufficient resource", () => {
    assert.equal(entryNameOf("OutOfexample.com/gpu"), "OutOfexample.com/gpu");
    assert.equal(termOf("OutOfexample.com/gpu").refuses, "OutOfExtendedResources");
    assert.ok(isRejection("OutOfexample.com/gpu"));
    assert.ok(!isRejection("Preempting"));
  });

  test("has replacements for unknown names and codes", () => {
    assert.equal(entryNameOf("FromTheFuture"), "UnknownEntry");
    assert.equal(causeCodeOf("FromTheFuture"), "UnknownCause");
    assert.equal(causeCodeOf("ContainerDied"), "ContainerDied");
  });
});
