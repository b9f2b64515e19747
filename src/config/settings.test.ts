import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "./defaults.ts";
import { kubeletSettings, socketEndpoint, uselessNameServers } from "./settings.ts";

test("the defaults give upstream's behaviour", () => {
  const settings = kubeletSettings(withDefaults({}));
  assert.equal(settings.cgroupRoot, "/");
  assert.equal(withDefaults({}).oomScoreAdj, -999);
  assert.equal(settings.cpuPeriodMicroseconds, 100_000n);
  assert.equal(settings.syncFrequencyMs, 60_000);
  assert.equal(settings.maxContainerRestartPeriodMs, 300_000);
  assert.equal(settings.runtimeRequestTimeoutMs, 120_000);
  assert.equal(settings.images.maxParallelImagePulls, 1, "one pull after the other");
  assert.equal(settings.images.registryPullQps, 5);
  assert.equal(settings.podPidsLimit, -1);
  assert.deepEqual(settings.logRotation, {
    maxSizeBytes: 10 * 1024 * 1024,
    maxFiles: 5,
    maxWorkers: 1,
    monitorIntervalMs: 10_000,
  });
});

test("fields become settings in internal units", () => {
  const settings = kubeletSettings(
    withDefaults({
      cgroupRoot: "/a//b/",
      cgroupDriver: "systemd",
      cpuCFSQuotaPeriod: "2500us",
      cpuCFSQuota: false,
      maxParallelImagePulls: 3,
      registryPullQPS: 0,
      clusterDNS: ["10.0.0.1", "no address", "2001:db8::1"],
      clusterDomain: "cluster.local",
      resolvConf: "",
      runtimeRequestTimeout: "30s",
      crashLoopBackOff: { maxContainerRestartPeriod: "20s" },
      podPidsLimit: 100,
    }),
  );
  assert.equal(settings.cgroupRoot, "/a/b");
  assert.equal(settings.cgroupDriver, "systemd");
  assert.equal(settings.cpuPeriodMicroseconds, 2500n);
  assert.equal(settings.cpuQuota, false);
  assert.equal(settings.images.maxParallelImagePulls, 3);
  assert.equal(settings.images.registryPullQps, 0);
  assert.equal(settings.images.requestTimeoutMs, 30_000);
  assert.deepEqual(settings.clusterDNS, ["10.0.0.1", "2001:db8::1"]);
  assert.deepEqual(uselessNameServers(withDefaults({ clusterDNS: ["10.0.0.1", "no address"] })), ["no address"]);
  assert.equal(settings.resolvConf, "");
  assert.equal(settings.maxContainerRestartPeriodMs, 20_000);
  assert.equal(settings.podPidsLimit, 100);
});

test("pulls may be unlimited, and a limit implies parallel pulls", () => {
  assert.equal(kubeletSettings(withDefaults({ serializeImagePulls: false })).images.maxParallelImagePulls, undefined);
  assert.equal(kubeletSettings(withDefaults({ maxParallelImagePulls: 1 })).images.maxParallelImagePulls, 1);
});

test("values that upstream does not validate and that cannot work are rejected", () => {
  assert.throws(
    () => kubeletSettings(withDefaults({ cgroupDriver: "other" })),
    /"other" must be "cgroupfs" or "systemd"/,
  );
  assert.throws(() => kubeletSettings(withDefaults({ cgroupRoot: "/a/../b" })), /must be a plain path/);
  assert.throws(() => socketEndpoint("containerRuntimeEndpoint", "tcp://h:1"), /"tcp:\/\/h:1" is not a Unix socket/);
  assert.equal(socketEndpoint("containerRuntimeEndpoint", "/run/x.sock"), "unix:///run/x.sock");
});

test("flags set which dead containers are kept", () => {
  const of = (flags: Parameters<typeof kubeletSettings>[1]) => kubeletSettings(withDefaults({}), flags).garbage;
  assert.deepEqual(of({}), { minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 });
  const given = {
    minimumContainerTtlDuration: "1m",
    maximumDeadContainersPerContainer: 3,
    maximumDeadContainers: 100,
  };
  assert.deepEqual(of(given), { minAgeMs: 60_000, maxPerPodContainer: 3, maxContainers: 100 });
  assert.throws(() => of({ minimumContainerTtlDuration: "-1s" }), /invalid minimum garbage collection age: -1s/u);
});

test("quotas measure volumes if their feature is on and local storage is accounted for", () => {
  const featureGates = { LocalStorageCapacityIsolationFSQuotaMonitoring: true };
  const uses = (configuration: Parameters<typeof withDefaults>[0]): boolean =>
    kubeletSettings(withDefaults(configuration)).usesQuotas;
  assert.equal(uses({}), false);
  assert.equal(uses({ featureGates }), true);
  assert.equal(uses({ featureGates, localStorageCapacityIsolation: false }), false);
});
