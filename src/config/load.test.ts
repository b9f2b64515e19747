import assert from "node:assert/strict";
import { dirname } from "node:path/posix";
import { test } from "node:test";
import { MemoryFiles } from "../sim/files.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { withDefaults } from "./defaults.ts";
import { parseKubeletFlags } from "./flags.ts";
import { kubeletSettings } from "./settings.ts";
import { loadConfiguration, type LoadedConfiguration } from "./load.ts";

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

async function load(
  arguments_: readonly string[],
  contents: Readonly<Record<string, string>> = {},
  cgroupVersion: 1 | 2 = 2,
): Promise<LoadedConfiguration> {
  const files = new MemoryFiles(new ManualClock());
  for (const [path, text] of Object.entries(contents)) {
    await files.makeDirectory(dirname(path), 0o755);
    await files.write(path, text, 0o644);
  }
  return loadConfiguration({ files, workingDirectory: "/cwd", cgroupVersion }, parseKubeletFlags(arguments_));
}

async function loadText(fields: string, ...arguments_: readonly string[]): Promise<LoadedConfiguration> {
  return load(["--config", "/etc/kubelet.yaml", ...arguments_], { "/etc/kubelet.yaml": header + fields });
}

test("a file without fields gives upstream's defaults with eviction thresholds, without a warning", async () => {
  const { configuration, warnings } = await loadText("");
  const { evictionHard, ...rest } = configuration;
  assert.deepEqual(rest, withDefaults({}));
  assert.equal(evictionHard?.["memory.available"], "100Mi");
  assert.deepEqual(warnings, []);
});

test("an error lists the unknown fields, too: a misspelled one may be its cause", async () => {
  const contents = { "/etc/kubelet.yaml": `${header}failCgroupv1: false\n` };
  await assert.rejects(load(["--config", "/etc/kubelet.yaml"], contents, 1), {
    message: new RegExp(
      "^invalid kubelet configuration:\n  kubelet is configured to not run on a host using cgroup v1.*\n" +
        '  warning: /etc/kubelet\\.yaml:3:1: failCgroupv1: unknown field "failCgroupv1"; did you mean "failCgroupV1"\\?$',
      "u",
    ),
  });
});

test("without a file the defaults are the permissive ones of early releases", async () => {
  const alone = (await load([])).configuration;
  assert.equal(alone.authentication.anonymous.enabled, true);
  assert.equal(alone.authentication.webhook.enabled, false);
  assert.equal(alone.authorization.mode, "AlwaysAllow");
  assert.equal(alone.readOnlyPort, 10255);
  assert.equal(alone.evictionHard, undefined);
  const { configuration } = await loadText("");
  assert.equal(configuration.authentication.anonymous.enabled, false);
  assert.equal(configuration.authorization.mode, "Webhook");
  assert.equal(configuration.readOnlyPort, undefined);
});

test("the command line takes precedence over drop-ins, later drop-ins over earlier ones, and drop-ins over the file", async () => {
  const { configuration } = await load(
    [
      "--config",
      "kubelet.yaml",
      "--config-dir=/etc/conf.d",
      "--registry-qps=9",
      "--cluster-dns=10.0.0.1",
      "--cluster-dns",
      "10.0.0.2",
    ],
    {
      "/cwd/kubelet.yaml": `${header}registryPullQPS: 1\nregistryBurst: 1\nmaxPods: 1\nclusterDNS: [10.9.9.9]\nclusterDomain: file`,
      "/etc/conf.d/10-a.conf": `${header}registryBurst: 2\nmaxPods: 2\nenforceNodeAllocatable: [none]`,
      "/etc/conf.d/20/b.conf": `${header}maxPods: 3\nclusterDomain: null`,
      "/etc/conf.d/99-ignored.yaml": "not read",
    },
  );
  assert.equal(configuration.registryPullQPS, 9);
  assert.equal(configuration.registryBurst, 2);
  assert.equal(configuration.maxPods, 3);
  assert.equal(configuration.clusterDomain, undefined, "null takes the field away");
  assert.deepEqual(configuration.clusterDNS, ["10.0.0.1", "10.0.0.2"], "a list of flags replaces a list of a file");
  assert.deepEqual(configuration.enforceNodeAllocatable, ["none"]);
});

test("maps of drop-ins are merged into those of the file and the defaults", async () => {
  const { configuration } = await load(["--config", "/f", "--config-dir", "/d"], {
    "/f": header,
    "/d/a.conf": `${header}evictionHard: {memory.available: 200Mi, imagefs.available: null}\nlogging: {verbosity: 2}`,
  });
  assert.deepEqual(configuration.evictionHard, {
    "memory.available": "200Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.inodesFree": "5%",
  });
  assert.deepEqual(configuration.logging, { format: "text", flushFrequency: "5s", verbosity: 2 });
});

test("thresholds of a file replace the defaults, unless mergeDefaultEvictionSettings is set", async () => {
  const alone = await loadText("evictionHard: {memory.available: 1Gi}");
  assert.deepEqual(alone.configuration.evictionHard, { "memory.available": "1Gi" });
  const merged = await loadText("evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true");
  assert.equal(merged.configuration.evictionHard?.["nodefs.available"], "10%");
});

test("feature gates of files and command line are merged; the command line takes precedence", async () => {
  const { configuration, warnings } = await loadText(
    "featureGates: {EventedPLEG: true, MemoryQoS: true}",
    "--feature-gates=MemoryQoS=false,KubeletCrashLoopBackOffMax=true",
  );
  assert.deepEqual(configuration.featureGates, {
    EventedPLEG: true,
    MemoryQoS: false,
    KubeletCrashLoopBackOffMax: true,
  });
  assert.ok(warnings.includes("feature gate EventedPLEG=true has no effect in podwright"));
  await assert.rejects(
    loadText("featureGates: {NoSuch: true}"),
    /\/etc\/kubelet\.yaml:3:16: unrecognized feature gate: NoSuch/,
  );
});

test("defaults behind feature gates depend on the gates of file and command line, including whole stages", async () => {
  const off = {
    crashLoopBackOff: { maxContainerRestartPeriod: undefined },
    imagePullCredentialsVerificationPolicy: "",
  };
  const ofBoth = ({ configuration }: LoadedConfiguration): object => {
    const { crashLoopBackOff, imagePullCredentialsVerificationPolicy } = configuration;
    return { crashLoopBackOff, imagePullCredentialsVerificationPolicy };
  };
  assert.deepEqual(ofBoth(await loadText("featureGates: {AllBeta: false}")), off);
  const flag = "--feature-gates=KubeletCrashLoopBackOffMax=false,KubeletEnsureSecretPulledImages=false";
  assert.deepEqual(ofBoth(await loadText("", flag)), off);
  assert.deepEqual(ofBoth(await load([flag])), off);
  const dropIn = { "/f": header, "/d/a.conf": `${header}featureGates: {KubeletCrashLoopBackOffMax: false}` };
  await assert.rejects(
    load(["--config", "/f", "--config-dir", "/d"], dropIn),
    /FeatureGate KubeletCrashLoopBackOffMax not enabled/,
    "a gate of a drop-in comes after the defaults, as upstream",
  );
});

test("all invalid files are reported, not just the first", async () => {
  const contents = {
    "/f": `${header}maxPods: x`,
    "/d/a.conf": `${header}port: x`,
    "/d/b.conf": header,
    "/d/c.conf": "- a",
  };
  await assert.rejects(load(["--config", "/f", "--config-dir", "/d"], contents), {
    exitCode: 2,
    message: /^\/f:3:1: maxPods: .*\n\/d\/a\.conf:3:1: port: .*\n\/d\/c\.conf.*: expected a KubeletConfiguration/,
  });
});

test("a --config-dir that is a file is bad input, with a remedy", async () => {
  await assert.rejects(load(["--config-dir", "/f"], { "/f": header }), {
    exitCode: 2,
    message: "--config-dir /f: is not a directory",
    remedy: "use a directory of *.conf files; use --config for a single file",
  });
});

test("relative paths start at the file's directory, those of drop-ins and flags at the working directory", async () => {
  const { configuration } = await loadText(
    "staticPodPath: manifests\nresolvConf: ../run/resolv.conf\npodLogsDir: logs\nauthentication: {x509: {clientCAFile: ca.crt}}",
    "--volume-plugin-dir=plugins",
  );
  assert.equal(configuration.staticPodPath, "/etc/manifests");
  assert.equal(configuration.resolvConf, "/run/resolv.conf");
  assert.equal(configuration.podLogsDir, "/etc/logs");
  assert.equal(configuration.authentication.x509?.clientCAFile, "/etc/ca.crt");
  assert.equal(configuration.volumePluginDir, "/cwd/plugins");
  const dropIn = { "/d/a.conf": `${header}staticPodPath: manifests` };
  assert.equal((await load(["--config-dir", "/d"], dropIn)).configuration.staticPodPath, "/cwd/manifests");
});

test("unknown and duplicate fields are warnings with their place, wrong types are errors", async () => {
  const { configuration, warnings } = await loadText(
    "maxPods: 5\nmaxPods: 6\nclusterDns: [10.0.0.1]\nlogging: {level: 3}\n" +
      "podManifestPath: /m\nnodeIP: 10.0.0.2\ncontainerRuntime: remote",
  );
  assert.equal(configuration.maxPods, 6, "the last one counts");
  assert.deepEqual(warnings.slice(0, 6), [
    "/etc/kubelet.yaml:4:1: maxPods: is a duplicate key",
    '/etc/kubelet.yaml:5:1: clusterDns: unknown field "clusterDns"; did you mean "clusterDNS"?',
    '/etc/kubelet.yaml:6:11: logging.level: unknown field "level"',
    '/etc/kubelet.yaml:7:1: podManifestPath: unknown field "podManifestPath": the field is "staticPodPath"',
    '/etc/kubelet.yaml:8:1: nodeIP: unknown field "nodeIP": only the flag --node-ip sets it',
    '/etc/kubelet.yaml:9:1: containerRuntime: unknown field "containerRuntime": the flag --container-runtime was removed in Kubernetes 1.27: delete it; use --container-runtime-endpoint',
  ]);
  const wrong = 'maxPods: "5"\nsyncFrequency: 10\nfailSwapOn: maybe\nhttpCheckFrequency: 3 weeks\nnoSuch: 1';
  await assert.rejects(loadText(wrong), {
    exitCode: 2,
    message: [
      "/etc/kubelet.yaml:3:1: maxPods: expected a number, got a string; leave out the quotes",
      "/etc/kubelet.yaml:4:1: syncFrequency: needs a unit: write 10s",
      "/etc/kubelet.yaml:5:1: failSwapOn: expected true or false, got a string",
      '/etc/kubelet.yaml:6:1: httpCheckFrequency: expected a duration such as "10s" or "1h30m"',
    ].join("\n"),
  });
});

test("null in a list is an empty text, and unparsable numbers stay texts", async () => {
  const { configuration } = await loadText(
    "tlsCipherSuites: [null, ~]\nproviderID: e2\nfailSwapOn: off\nmaxPods: 0o17",
  );
  const { tlsCipherSuites, providerID, failSwapOn, maxPods } = configuration;
  assert.deepEqual([tlsCipherSuites, providerID, failSwapOn, maxPods], [["", ""], "e2", false, 15]);
});

test("an invalid value is reported with file and line, or with the command line", async () => {
  const text = "maxPods: -1\nfeatureGates: {TopologyManager: true}";
  await assert.rejects(loadText(text, "--registry-burst=-2"), (error: Error) => {
    const lines = new Set(error.message.split("\n").map((line) => line.trim()));
    assert.ok(
      lines.has("/etc/kubelet.yaml:3:1: invalid configuration: maxPods (--max-pods) -1 must not be a negative number"),
      error.message,
    );
    assert.ok(
      lines.has(
        "/etc/kubelet.yaml:4:16: unrecognized feature gate: TopologyManager (removed after Kubernetes 1.28: delete it)",
      ),
      error.message,
    );
    assert.ok(
      lines.has(
        "the command line: invalid configuration: registryBurst (--registry-burst) -2 must not be a negative number",
      ),
      error.message,
    );
    return true;
  });
});

test("the error for a duration without a unit suggests one", async () => {
  for (const [text, wanted] of [
    ["syncFrequency: 60", "needs a unit: write 60s"],
    ['syncFrequency: "1.5"', "needs a unit: write 1.5s"],
    ["crashLoopBackOff: {maxContainerRestartPeriod: 30}", "needs a unit: write 30s"],
    ["imageMaximumGCAge: 7d", "cannot have days: write 168h"],
    ["syncFrequency: [1s]", 'expected a duration such as "10s" or "1h30m"'],
  ] as const) {
    await assert.rejects(loadText(text), (error: Error) => error.message.endsWith(`: ${wanted}`), text);
  }
});

test("integers must fit their type; every 64-bit integer is accepted", async () => {
  const { configuration } = await loadText("podPidsLimit: 9223372036854775807\nmaxOpenFiles: 9223372036854775807");
  assert.equal(configuration.podPidsLimit, Number.MAX_SAFE_INTEGER);
  assert.equal(kubeletSettings(configuration).podPidsLimit, 4_194_304, "the kernel takes no more");
  await assert.rejects(loadText("maxPods: 3000000000\nport: -2147483649\npodPidsLimit: 1.5\nmaxOpenFiles: 1e40"), {
    exitCode: 2,
    message: [
      "/etc/kubelet.yaml:3:1: maxPods: the number is outside int32: -2147483648 to 2147483647",
      "/etc/kubelet.yaml:4:1: port: the number is outside int32: -2147483648 to 2147483647",
      "/etc/kubelet.yaml:5:1: podPidsLimit: expected a whole number, got a number with a fraction",
      "/etc/kubelet.yaml:6:1: maxOpenFiles: the number exceeds 64 bits",
    ].join("\n"),
  });
});

test("only the first document counts, and problems of later ones are warnings", async () => {
  const { configuration, warnings } = await loadText("maxPods: 7\n---\nmaxPods: *x\n");
  assert.equal(configuration.maxPods, 7);
  assert.match(warnings.join("\n"), /^\/etc\/kubelet\.yaml:5:10: maxPods: an alias without an anchor above it/u);
});

test("a file that is empty, missing, of another kind or version is an error that names it", async () => {
  await assert.rejects(load(["--config", "/empty"], { "/empty": "" }), /kubelet config file "\/empty" was empty/);
  await assert.rejects(load(["--config", "/none"]), /failed to read kubelet config file: .*\/none/);
  await assert.rejects(load(["--config-dir", "/none"]), /--config-dir \/none: no such directory/);
  await assert.rejects(load(["--config", "/f"], { "/f": "apiVersion: v1\nkind: Pod" }), {
    exitCode: 2,
    message: '/f:1:1: apiVersion: Unsupported value: "v1": supported values: "kubelet.config.k8s.io/v1beta1"',
  });
  await assert.rejects(load(["--config-dir", "/d"], { "/d/a.conf": "maxPods: 3" }), /\/d\/a.conf.*apiVersion/);
  await assert.rejects(
    load(["--config", "/f"], { "/f": "- a" }),
    /expected a KubeletConfiguration \(a map\), got a list/,
  );
});

test("unsupported fields are warnings with their place, except empty values of generated files", async () => {
  const { warnings } = await loadText(
    "maxPods: 10\nevictionMaxPodGracePeriod: 0\nvolumePluginDir: /drivers\nmemorySwap: {}\nimageMaximumGCAge: 0s\n" +
      "readOnlyPort: 0\ncpuManagerReconcilePeriod: 0s\nlogging: {flushFrequency: 0, options: {json: {infoBufferSize: '0'}}}",
    "--boot-id-file=/x",
    "--max-pods=11",
    "--volume-stats-agg-period=2m",
  );
  assert.deepEqual(warnings, [
    "Flag --boot-id-file is not honoured: podwright collects statistics itself, without cAdvisor",
    "Flag --max-pods has been deprecated, This parameter should be set via the config file specified by --config.",
    "Flag --volume-stats-agg-period has been deprecated, This parameter should be set via the config file specified by --config.",
    "/etc/kubelet.yaml:5:1: volumePluginDir: not honoured: podwright runs no Flexvolume drivers",
  ]);
});

test("on a cgroup v1 host the configuration must allow it, in upstream's words", async () => {
  await assert.rejects(
    load([], {}, 1),
    /kubelet is configured to not run on a host using cgroup v1\. cgroup v1 support is unsupported and will be removed in a future release/,
  );
  assert.ok(await load(["--fail-cgroupv1=false"], {}, 1));
});

test("--seccomp-default and the field each enable it", async () => {
  assert.equal((await loadText("seccompDefault: true")).configuration.seccompDefault, true);
  assert.equal((await loadText("seccompDefault: false", "--seccomp-default")).configuration.seccompDefault, true);
});
