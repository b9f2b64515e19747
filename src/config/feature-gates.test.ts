import assert from "node:assert/strict";
import { test } from "node:test";
import { vectorText } from "../../test/support/vectors.ts";
import { featureGates, featureStates, knownFeatureGates } from "./feature-gates.ts";
import { removedGates } from "./removed-gates.ts";

const errorsOf = (settings: Readonly<Record<string, boolean>>): string[] =>
  featureGates(settings).errors.map(({ problem }) => problem);

test("every gate of the 1.36 kubelet is known", () => {
  const known = knownFeatureGates();
  assert.ok(known.size > 230, String(known.size));
  assert.deepEqual(known.get("EventedPLEG"), { stage: "alpha", enabled: false, locked: false });
  assert.deepEqual(known.get("NodeSwap"), { stage: "ga", enabled: true, locked: true });
  assert.deepEqual(known.get("GitRepoVolumeDriver"), { stage: "deprecated", enabled: false, locked: true });
});

test("gates have the stages and defaults of upstream, and what is set changes what is told of them", () => {
  // Recorded from Kubernetes 1.36.2's own registry of gates, as kubernetes_feature_enabled is made from it.
  const recorded = vectorText("feature-gates.tsv").trimEnd().split("\n");
  assert.deepEqual(
    featureStates().map(({ name, stage, enabled }) => `${name}\t${stage}\t${enabled}`),
    recorded,
  );
  const changed = featureStates({ AllBeta: false, ContextualLogging: true, NodeSwap: true });
  const stateOf = (wanted: string): boolean | undefined => changed.find(({ name }) => name === wanted)?.enabled;
  assert.deepEqual(["AllBeta", "ComponentStatusz", "ContextualLogging", "NodeSwap"].map(stateOf), [
    ...[false, false, true, true],
  ]);
});

test("an unknown gate and a change of a locked one are errors in upstream's words", () => {
  assert.deepEqual(errorsOf({ PodPriorities: true, NodeSwap: false, ImageVolume: true }), [
    "unrecognized feature gate: PodPriorities",
    "cannot set feature gate NodeSwap to false, feature is locked to true: delete it",
  ]);
});

test("a gate that is gone is told with the version after which it went, one that has another name with that", () => {
  assert.deepEqual(
    errorsOf({
      TopologyManager: true,
      PodHasNetworkCondition: true,
      CPUCFSQuotaPeriod: true,
      InPlacePodVerticalScalling: true,
    }),
    [
      "unrecognized feature gate: TopologyManager (removed after Kubernetes 1.28: delete it)",
      "unrecognized feature gate: PodHasNetworkCondition (removed after Kubernetes 1.27: renamed to PodReadyToStartContainersCondition)",
      "unrecognized feature gate: CPUCFSQuotaPeriod (renamed to CustomCPUCFSQuotaPeriod)",
      "unrecognized feature gate: InPlacePodVerticalScalling; did you mean InPlacePodVerticalScaling?",
    ],
  );
});

test("no gate that is known is told to be gone", () => {
  const known = knownFeatureGates();
  assert.ok(removedGates().length > 150);
  assert.deepEqual(
    removedGates().filter((name) => known.has(name)),
    [],
  );
});

test("a gate that changes nothing here is told, one at its default is not", () => {
  const gates = featureGates({ EventedPLEG: true, ContainerCheckpoint: true, CustomCPUCFSQuotaPeriod: false });
  assert.deepEqual(gates.warnings, ["feature gate EventedPLEG=true has no effect in podwright"]);
  assert.equal(gates.enabled("CustomCPUCFSQuotaPeriod"), false);
  assert.deepEqual(gates.errors, []);
});

test("AllAlpha and AllBeta set what is not named itself and not locked", () => {
  const gates = featureGates({ AllAlpha: true, AllBeta: false, EventedPLEG: false, KubeletCrashLoopBackOffMax: true });
  assert.equal(gates.enabled("MemoryQoS"), true);
  assert.equal(gates.enabled("EventedPLEG"), false);
  assert.equal(gates.enabled("ComponentStatusz"), false);
  assert.equal(gates.enabled("KubeletCrashLoopBackOffMax"), true);
  assert.equal(gates.enabled("NodeSwap"), true);
  assert.equal(gates.enabled("NoSuchGate"), false);
});

test("AllAlpha and AllBeta are told with the gates that podwright looks at, and only where they change some", () => {
  const warningsOf = (settings: Readonly<Record<string, boolean>>): string => featureGates(settings).warnings.join();
  assert.equal(
    warningsOf({ AllAlpha: true }),
    "feature gate AllAlpha=true has no effect in podwright beyond MemoryQoS, PodsAPI, QOSReserved",
  );
  const others = { PodsAPI: false, MemoryQoS: false, QOSReserved: false };
  assert.equal(warningsOf({ AllAlpha: true, ...others }), "feature gate AllAlpha=true has no effect in podwright");
  assert.match(warningsOf({ AllBeta: false }), /beyond ComponentFlagz, .*KubeletCrashLoopBackOffMax/);
  assert.equal(warningsOf({ AllBeta: true }), "feature gate AllBeta=true has no effect in podwright");
  assert.equal(warningsOf({ AllAlpha: false }), "");
});

test("gates that 1.36 locks can't be changed", () => {
  const settings = {
    SidecarContainers: false,
    CustomResourceFieldSelectors: false,
    RetryGenerateName: false,
    SeparateCacheWatchRPC: true,
  };
  assert.deepEqual(
    errorsOf(settings),
    Object.entries(settings).map(([name, value]) => {
      return `cannot set feature gate ${name} to ${value}, feature is locked to ${!value}${value ? "" : ": delete it"}`;
    }),
  );
});

test("a gate that is on needs those it depends on", () => {
  assert.deepEqual(errorsOf({ GracefulNodeShutdown: false }), [
    "GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that are disabled: [GracefulNodeShutdown]",
    "WindowsGracefulNodeShutdown is enabled, but depends on features that are disabled: [GracefulNodeShutdown]",
  ]);
  const both = { NodeDeclaredFeatures: false, PodLevelResources: false };
  assert.ok(
    errorsOf(both).includes(
      "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: [NodeDeclaredFeatures PodLevelResources]",
    ),
  );
  assert.deepEqual(errorsOf({ AllBeta: false }), [], "what goes off together is whole");
  assert.deepEqual(errorsOf({}), []);
  assert.deepEqual(
    errorsOf({ GracefulNodeShutdown: false, NoSuch: true }),
    ["unrecognized feature gate: NoSuch"],
    "as upstream, which looks no further then",
  );
});
