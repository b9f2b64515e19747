import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProcessInfo } from "../ports/processes.ts";
import { runtimeUsers } from "./runtime-users.ts";
import { FakeFiles, processOf } from "./testing.ts";

/** The endpoint that a process of this command line is found to use. */
async function endpointOf(commandLine: string | ProcessInfo, files = new FakeFiles()): Promise<string | undefined> {
  const process = typeof commandLine === "string" ? processOf(7, commandLine) : commandLine;
  return (await runtimeUsers(files, [process]))[0]?.endpoint;
}

const containerd = "unix:///run/containerd/containerd.sock";

test("a kubelet uses the runtime in its flag, in both spellings", async () => {
  assert.equal(
    await endpointOf("/usr/bin/kubelet --container-runtime-endpoint=unix:///a.sock --v=2"),
    "unix:///a.sock",
  );
  assert.equal(await endpointOf("kubelet --container-runtime-endpoint unix:///b.sock"), "unix:///b.sock");
});

test("a kubelet without the flag uses its configuration file's runtime, read relative to the process's root", async () => {
  const files = new FakeFiles().put(
    "/proc/7/root/var/lib/kubelet/config.yaml",
    "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///c.sock\n",
  );
  assert.equal(await endpointOf("kubelet --config=/var/lib/kubelet/config.yaml", files), "unix:///c.sock");
  files.put("/proc/7/cwd/relative.yaml", "containerRuntimeEndpoint: unix:///d.sock");
  assert.equal(await endpointOf("kubelet --config relative.yaml", files), "unix:///d.sock");
});

test("the last of a kubelet's drop-in files overrides the others, and other files are ignored", async () => {
  const files = new FakeFiles()
    .put("/proc/7/root/etc/k.yaml", "containerRuntimeEndpoint: unix:///main.sock")
    .put("/proc/7/root/etc/k.d/20.conf", "containerRuntimeEndpoint: unix:///twenty.sock")
    .put("/proc/7/root/etc/k.d/10.conf", "containerRuntimeEndpoint: unix:///ten.sock")
    .put("/proc/7/root/etc/k.d/30.conf", "maxPods: 10")
    .put("/proc/7/root/etc/k.d/40.yaml", "containerRuntimeEndpoint: unix:///ignored.sock");
  assert.equal(await endpointOf("kubelet --config=/etc/k.yaml --config-dir=/etc/k.d", files), "unix:///twenty.sock");
});

test("a kubelet with a missing, invalid or silent configuration uses containerd's usual socket", async () => {
  const files = new FakeFiles().put("/proc/7/root/silent.yaml", "maxPods: 10").put("/proc/7/root/broken.yaml", "{[");
  for (const path of ["/silent.yaml", "/broken.yaml", "/gone.yaml"]) {
    assert.equal(await endpointOf(`kubelet --config=${path}`, files), containerd);
  }
  assert.equal(await endpointOf("kubelet"), containerd);
});

test("distributions with an embedded kubelet are recognized, with their own runtimes", async () => {
  const k3s = "unix:///run/k3s/containerd/containerd.sock";
  assert.equal(await endpointOf("/usr/local/bin/k3s server"), k3s);
  assert.equal(await endpointOf({ pid: 7, name: "k3s-server", arguments: ["/usr/local/bin/k3s server"] }), k3s);
  assert.equal(await endpointOf("rke2 agent --container-runtime-endpoint=unix:///e.sock"), "unix:///e.sock");
  assert.equal(await endpointOf("k0s worker --cri-socket=remote:unix:///f.sock"), "unix:///f.sock");
  assert.equal(await endpointOf("k0s controller --single"), "unix:///run/k0s/containerd.sock");
  assert.equal(await endpointOf("microshift run"), "unix:///run/crio/crio.sock");
  assert.equal(
    await endpointOf("/snap/microk8s/1/kubelite --kubelet-args-file=/var/snap/microk8s/1/args/kubelet"),
    "unix:///var/snap/microk8s/common/run/containerd.sock",
  );
});

test("another podwright uses the runtime given to it; its private one does not matter", async () => {
  assert.equal(
    await endpointOf("node /opt/podwright/dist/podwright.js engine --state-dir /x --runtime-endpoint unix:///g.sock"),
    "unix:///g.sock",
  );
  assert.equal(await endpointOf("node /opt/podwright/dist/podwright.js run a.yaml"), undefined);
  assert.equal(await endpointOf("podwright run --runtime-endpoint unix:///g.sock a.yaml"), undefined, "a client");
  assert.equal(await endpointOf("podwright kubelet --container-runtime-endpoint=unix:///h.sock"), "unix:///h.sock");
  assert.equal(await endpointOf("podwright kubelet"), containerd);
  const files = new FakeFiles().put("/proc/7/root/etc/k.yaml", "containerRuntimeEndpoint: unix:///i.sock");
  assert.equal(await endpointOf("podwright kubelet --config /etc/k.yaml", files), "unix:///i.sock");
  assert.equal(await endpointOf("podwright ps"), undefined);
});

test("programs that only look like a node agent are ignored", async () => {
  for (const commandLine of [
    "kubectl get pods",
    "k3s kubectl get pods",
    "vim kubelet",
    "sudo podwright kubelet",
    "k0s version",
  ]) {
    assert.equal(await endpointOf(commandLine), undefined, commandLine);
  }
  assert.equal(await endpointOf({ pid: 7, name: "kthreadd", arguments: [] }), undefined);
});
