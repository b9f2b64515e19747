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

test("gates have upstream's stages and defaults, and their state reflects the settings", () => {
  // Recorded from Kubernetes 1.36.2's registry of gates, the source of kubernetes_feature_enabled.
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

test("unknown gates and changed locked gates are errors in upstream's words", () => {
  assert.deepEqual(errorsOf({ PodPriorities: true, NodeSwap: false, ImageVolume: true }), [
    "unrecognized feature gate: PodPriorities",
    "cannot set feature gate NodeSwap to false, feature is locked to true: delete it",
  ]);
});

test("a removed gate is reported with its last version, a renamed one with its new name", () => {
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

test("no known gate is reported as removed", () => {
  const known = knownFeatureGates();
  assert.ok(removedGates().length > 150);
  assert.deepEqual(
    removedGates().filter((name) => known.has(name)),
    [],
  );
});

test("a changed gate without effect is a warning, an unchanged one is not", () => {
  const gates = featureGates({ EventedPLEG: true, ContainerCheckpoint: true, CustomCPUCFSQuotaPeriod: false });
  assert.deepEqual(gates.warnings, ["feature gate EventedPLEG=true has no effect in podwright"]);
  assert.equal(gates.enabled("CustomCPUCFSQuotaPeriod"), false);
  assert.deepEqual(gates.errors, []);
});

test("AllAlpha and AllBeta set gates that are neither named nor locked", () => {
  const gates = featureGates({ AllAlpha: true, AllBeta: false, EventedPLEG: false, KubeletCrashLoopBackOffMax: true });
  assert.equal(gates.enabled("MemoryQoS"), true);
  assert.equal(gates.enabled("EventedPLEG"), false);
  assert.equal(gates.enabled("ComponentStatusz"), false);
  assert.equal(gates.enabled("KubeletCrashLoopBackOffMax"), true);
  assert.equal(gates.enabled("NodeSwap"), true);
  assert.equal(gates.enabled("NoSuchGate"), false);
});

test("AllAlpha and AllBeta are warnings, with the supported gates that they change", () => {
  const warningsOf = (settings: Readonly<Record<string, boolean>>): string => featureGates(settings).warnings.join();
  assert.equal(
    warningsOf({ AllAlpha: true }),
    "feature gate AllAlpha=true has no effect in podwright beyond CSIVolumeHealth, KubeletInUserNamespace, MemoryQoS, PodsAPI, QOSReserved",
  );
  const others = Object.fromEntries(
    ["CSIVolumeHealth", "KubeletInUserNamespace", "PodsAPI", "MemoryQoS", "QOSReserved"].map((name) => [name, false]),
  );
  assert.equal(warningsOf({ AllAlpha: true, ...others }), "feature gate AllAlpha=true has no effect in podwright");
  assert.match(warningsOf({ AllBeta: false }), /beyond ComponentFlagz, .*KubeletCrashLoopBackOffMax/);
  assert.equal(
    warningsOf({ AllBeta: true }),
    "feature gate AllBeta=true has no effect in podwright beyond LocalStorageCapacityIsolationFSQuotaMonitoring",
  );
  assert.equal(warningsOf({ AllAlpha: false }), "");
});

test("gates that are locked in 1.36 cannot be changed", () => {
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

test("an enabled gate requires its dependencies", () => {
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
