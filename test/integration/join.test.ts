import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { disableKubelet, enableKubelet } from "../../src/cli/enable-kubelet.ts";
import { joinCommand, kubeletDoctor, leaveCommand } from "../../src/cli/join.ts";
import { CsiDriver, type CsiDriverOptions } from "../support/csi-driver.ts";
import { FileError } from "../../src/ports/files.ts";
import { KubeadmNode } from "../support/kubeadm-node.ts";

test("a kubeadm node is joined with its own unit and flags, and restored", async () => {
  await using node = await KubeadmNode.open();
  const context = await node.context();
  assert.equal(await joinCommand(context, { fromKubeadm: true, dryRun: true }, node.places), 0, node.printed);
  assert.match(node.printed, /✓ configuration +every field and flag is honoured/u);
  assert.match(
    node.printed,
    /would write .*kubelet --config=.* --hostname-override=node1 --cpu-cfs-quota=true --root-dir=/u,
  );
  assert.equal(existsSync(node.dropIn), false);
  assert.deepEqual(node.calls, []);
  assert.equal(await joinCommand(context, { fromKubeadm: true }, node.places), 0, node.printed);
  const dropIn = await readFile(node.dropIn, "utf8");
  // The unit's own variables, so that what kubeadm writes there later counts.
  const parameters = `\\$KUBELET_CONFIG_ARGS \\$KUBELET_KUBEADM_ARGS --root-dir=.* \\$KUBELET_EXTRA_ARGS`;
  assert.match(
    dropIn,
    new RegExp(`^ExecStart=\nExecStart=/usr/lib/podwright/bin/podwright kubelet ${parameters}$`, "mu"),
  );
  for (const setting of ["Type=notify", "KillMode=process", "Delegate=yes"]) {
    assert.ok(dropIn.includes(setting), setting);
  }
  assert.deepEqual(node.calls.splice(0), ["systemctl daemon-reload", "systemctl restart kubelet.service"]);
  assert.equal(await leaveCommand(context, node.places), 0);
  assert.equal(existsSync(dirname(node.dropIn)), false);
  assert.deepEqual(node.calls, ["systemctl daemon-reload", "systemctl restart kubelet.service"]);
  await assert.rejects(leaveCommand(context, node.places), /this node was not joined by podwright/u);
});

test("a kubelet that does not start gives its place back at once", async () => {
  await using node = await KubeadmNode.open();
  const context = await node.context();
  node.failsOnce = true;
  await assert.rejects(joinCommand(context, { fromKubeadm: true }, node.places), {
    message: "podwright did not start as kubelet.service, which has its earlier kubelet again",
    remedy: "see: journalctl -u kubelet.service",
  });
  assert.equal(existsSync(node.dropIn), false);
  const once = ["systemctl daemon-reload", "systemctl restart kubelet.service"];
  assert.deepEqual(node.calls.splice(0), [...once, ...once]);
  // A node that was joined before stays so.
  assert.equal(await joinCommand(context, { fromKubeadm: true }, node.places), 0, node.printed);
  node.failsOnce = true;
  await assert.rejects(joinCommand(context, { fromKubeadm: true }, node.places), /Job for kubelet\.service failed/u);
  assert.equal(existsSync(node.dropIn), true);
});

test("what podwright would reject prevents the join, with the file and the field", async () => {
  await using node = await KubeadmNode.open("maxPods: -1\n");
  assert.equal(await joinCommand(await node.context(), { fromKubeadm: true }, node.places), 3);
  assert.match(node.printed, /✗ configuration +.*config\.yaml.*maxPods/u);
  assert.match(node.printed, /^1 failed, 0 warnings$/mu, "without the problems' heading");
  assert.equal(existsSync(node.dropIn), false);
  assert.deepEqual(node.calls, []);
});

test("doctor reports in advance what would differ on this node, and changes nothing", async () => {
  await using node = await KubeadmNode.open("topologyManagerPolicy: best-effort\n");
  await node.put(
    "manifests/bad.yaml",
    "apiVersion: v1\nkind: Pod\nmetadata: { name: bad }\nspec: { containers: [] }\n",
  );
  const plugins = { root: join(node.directory, "kubelet"), directory: join(node.directory, "plugin") };
  await using cleanUps = new AsyncDisposableStack();
  const register = async (options: Partial<CsiDriverOptions>): Promise<CsiDriver> => {
    const plugin = cleanUps.use(new CsiDriver({ ...plugins, ...options }));
    await plugin.register();
    return plugin;
  };
  await register({ name: "csi.example.com" });
  await register({ name: "gpu.example.com", type: "DRAPlugin" });
  using _hanging = (await register({ name: "silent.example.com" })).hang("GetInfo");
  await node.put("kubelet/device-plugins/gpu.sock", "");
  await node.put("kubelet/device-plugins/kubelet.sock", "");
  assert.equal(await kubeletDoctor(await node.context(), true, node.places), 3);
  const { checks } = JSON.parse(node.printed) as { readonly checks: readonly Record<string, string>[] };
  const found = checks.map(({ name, ok, detail }) => `${ok} ${name}: ${detail}`);
  assert.match(
    found[0] ?? "",
    /^warning configuration: .*config\.yaml:\d+:\d+: topologyManagerPolicy: not honoured: /u,
  );
  assert.equal(found.filter((line) => line.startsWith("warning configuration")).length, 1, found.join("\n"));
  const has = (pattern: RegExp): void =>
    assert.ok(
      found.some((line) => pattern.test(line)),
      found.join("\n"),
    );
  has(/^ok control groups: cgroup v[12]$/u);
  has(/^ok cgroup driver: cgroupfs, as /u);
  has(/^ok runtime: .*cri\.sock/u);
  has(/^failed static pods: .*bad\.yaml/u);
  has(/^ok static pods: 1 manifest is valid/u);
  has(/^ok start: nothing prevents the start$/u);
  has(/^ok plugins: the CSI driver csi\.example\.com is registered/u);
  has(/^warning plugins: gpu\.example\.com \(DRAPlugin\) is registered: only CSI drivers are supported/u);
  has(/^warning plugins: silent\.example\.com-reg\.sock does not describe its plugin: /u);
  has(/^warning plugins: gpu\.sock is registered: device plugins/u);
  assert.equal(found.filter((line) => line.includes("kubelet.sock")).length, 0);
});

test("doctor reports every problem of flags and fields, and still checks what they leave", async () => {
  const wrong = [
    "maxPods: '3'",
    "port: -1",
    "featureGates: { NoSuch: true, NorThis: true }",
    "topologyManagerPolicy: none-such",
  ];
  await using node = await KubeadmNode.open(`${wrong.join("\n")}\n`);
  await node.put("flags.env", 'KUBELET_KUBEADM_ARGS="--nodename=a --kubconfig b --network-plugin=cni --v=x"\n');
  await node.put("manifests/bad.yaml", "kind: Pod\n");
  assert.equal(await kubeletDoctor(await node.context(), true, node.places), 3);
  const { checks } = JSON.parse(node.printed) as { readonly checks: readonly Record<string, string>[] };
  const found = checks.map(({ name, ok, detail }) => `${ok} ${name}: ${detail}`);
  for (const pattern of [
    /^failed configuration: unknown flag: --nodename$/u,
    /^failed configuration: unknown flag: --kubconfig; did you mean --kubeconfig\?$/u,
    /^failed configuration: unknown flag: --network-plugin: removed in /u,
    /^failed configuration: invalid argument "x" for --v: /u,
    /^failed configuration: .*config\.yaml:\d+:1: maxPods: expected a number, got a string/u,
    /^failed configuration: .*config\.yaml:\d+:1: .*port/u,
    /^failed configuration: .*config\.yaml:\d+:\d+: unrecognized feature gate: NoSuch$/u,
    /^failed configuration: .*config\.yaml:\d+:\d+: unrecognized feature gate: NorThis$/u,
    /^(?:failed|warning) configuration: .*topologyManagerPolicy/u,
    /^\w+ control groups: /u,
    /^ok runtime: .*cri\.sock/u,
    /^failed static pods: .*bad\.yaml/u,
    /^ok static pods: 1 manifest is valid/u,
  ]) {
    assert.ok(
      found.some((line) => pattern.test(line)),
      `${pattern}:\n${found.join("\n")}`,
    );
  }
  assert.equal(await joinCommand(await node.context(), { fromKubeadm: true }, node.places), 3);
  assert.deepEqual(node.calls, []);
});

test("doctor checks what the kubelet's start would: reservations, kubeconfigs, plugins, CPUs and the cloud", async () => {
  await using node = await KubeadmNode.open("kubeReserved: { memory: 1Pi }\nreservedSystemCPUs: '4094'\n");
  const flags = [
    ...["--kubeconfig=missing.conf", "--image-credential-provider-config=/missing.yaml"],
    ...["--image-credential-provider-bin-dir=/nonexistent", "--cloud-metadata=mars", "--exit-on-lock-contention"],
  ];
  await node.put("flags.env", `KUBELET_KUBEADM_ARGS="${flags.join(" ")}"\n`);
  assert.equal(await kubeletDoctor(await node.context(), true, node.places), 3);
  const { checks } = JSON.parse(node.printed) as { readonly checks: readonly Record<string, string>[] };
  const found = checks.map(({ name, ok, detail }) => `${ok} ${name}: ${detail}`);
  for (const pattern of [
    /^failed reservations: invalid Node Allocatable configuration\. .*memory/u,
    /^failed reserved CPUs: reserved-cpus: 4094 is not a subset of online-cpus/u,
    /^failed cloud provider: bad --cloud-metadata "mars"/u,
    /^failed lock file: cannot exit on lock file contention/u,
    /^failed credential providers: plugin binary directory \/nonexistent did not exist/u,
    /^failed kubeconfig: .*\/missing\.conf/u,
  ]) {
    assert.ok(
      found.some((line) => pattern.test(line)),
      `${pattern}:\n${found.join("\n")}`,
    );
  }
});

test("without the configuration's file, doctor does not check a runtime of defaults", async () => {
  await using node = await KubeadmNode.open();
  await rm(join(node.directory, "config.yaml"));
  assert.equal(await kubeletDoctor(await node.context(), false, node.places), 3);
  assert.match(node.printed, /✗ configuration +failed to read kubelet config file: .*config\.yaml/u);
  assert.match(node.printed, /control groups/u);
  assert.doesNotMatch(node.printed, /runtime/u);
});

test("a drop-in that cannot be written leaves nothing", async () => {
  await using node = await KubeadmNode.open();
  const context = await node.context();
  const files = {
    ...context.files,
    writeAtomic: async (path: string) =>
      Promise.reject(new FileError("EROFS", path, `EROFS: read-only file system, open '${path}'`)),
  };
  await assert.rejects(joinCommand({ ...context, files }, { fromKubeadm: true }, node.places), { code: "EROFS" });
  assert.equal(existsSync(dirname(node.dropIn)), false);
});

test("a machine without a kubelet is distinguished from one with unreadable units or files", async () => {
  await using node = await KubeadmNode.open();
  const context = await node.context();
  node.refusal = "No files found for kubelet.service.\n";
  await assert.rejects(kubeletDoctor(context, false, node.places), /this machine has no kubelet\.service/u);
  node.refusal = "Failed to connect to bus: Host is down\n";
  for (const ask of [
    kubeletDoctor(context, false, node.places),
    joinCommand(context, { fromKubeadm: true }, node.places),
  ]) {
    await assert.rejects(ask, /^PodwrightError: systemctl cat kubelet\.service: Failed to connect to bus/u);
  }
  node.refusal = "";
  await rm(join(node.directory, "flags.env"));
  await mkdir(join(node.directory, "flags.env"));
  await assert.rejects(kubeletDoctor(context, false, node.places), /flags\.env/u);
});

test("a configuration is enabled as a service, and disabled again", async () => {
  await using node = await KubeadmNode.open();
  const context = await node.context();
  const config = join(node.directory, "config.yaml");
  await mkdir(node.places.units);
  const unit = join(node.places.units, "podwright-kubelet.service");
  assert.equal(await enableKubelet(context, config, node.places), 0, node.printed);
  const text = await readFile(unit, "utf8");
  assert.ok(text.includes(`\nExecStart=/usr/lib/podwright/bin/podwright kubelet --config ${config}\n`), text);
  const service = "podwright-kubelet.service";
  const enabled = ["daemon-reload", `enable --quiet ${service}`, `restart ${service}`];
  assert.deepEqual(
    node.calls.splice(0),
    enabled.map((words) => `systemctl ${words}`),
  );
  assert.equal(await disableKubelet(context, node.places), 0);
  assert.equal(existsSync(unit), false);
  assert.deepEqual(node.calls, [`systemctl disable --quiet --now ${service}`, "systemctl daemon-reload"]);
  await assert.rejects(disableKubelet(context, node.places), /there is no podwright-kubelet\.service/u);
});

test("a second kubelet is not enabled, nor one that would not start", async () => {
  await using node = await KubeadmNode.open();
  const context = await node.context();
  const config = join(node.directory, "config.yaml");
  node.active.add("kubelet.service");
  await assert.rejects(enableKubelet(context, config, node.places), /kubelet\.service runs on this machine/u);
  node.active.clear();
  await node.put("config.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: -1\n");
  await assert.rejects(enableKubelet(context, config, node.places), /maxPods/u);
  assert.equal(existsSync(node.places.units), false);
  assert.deepEqual(node.calls, []);
});
