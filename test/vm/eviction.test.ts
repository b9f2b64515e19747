import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import type { PodStatus } from "../../src/api/status.ts";
import { TestApiServer } from "../apiserver/server.ts";
import { boundPod } from "../support/bound-pod.ts";
import { until } from "../support/podwright.ts";
import { KubeletService } from "./kubelet-service.ts";
import { cgroupIsThere } from "./machine.ts";

const mi = 2 ** 20;
const kubeconfig = "/etc/kubernetes/kubeconfig";
const usual = "evictionPressureTransitionPeriod: 1s";

// Static pods are critical: only a server's pods are evicted.
const server = await TestApiServer.start();
mkdirSync("/etc/kubernetes", { recursive: true });
const credentials = server.credentials("system:node:node1", ["system:nodes"]);
writeFileSync(kubeconfig, server.kubeconfig(credentials), { mode: 0o600 });
const node = await KubeletService.start(`${usual}\nevictionHard: { memory.available: 1Mi }`, [
  ...["--kubeconfig", kubeconfig],
]);
after(async () => {
  // Those of a server outlive the manifests that the node is cleared of.
  for (const { metadata } of server.admin.list("pods")) server.admin.delete("pods", `default/${metadata.name ?? ""}`);
  await node[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

test("on cgroup v2 the pod that uses most memory is evicted, and its cgroup is removed", async () => {
  const { admin } = server;
  const statusOf = (name: string): PodStatus =>
    (admin.get("pods", `default/${name}`) as unknown as { readonly status: PodStatus }).status;
  const isIn = async (name: string, phase: string): Promise<void> =>
    await until(
      () => `pod ${name} to be ${phase}; it is ${JSON.stringify(statusOf(name))}\n${node.log()}`,
      async () => statusOf(name).phase === phase,
    );
  const resources = { requests: { memory: "16Mi" } };
  admin.create(boundPod("modest", { resources }));
  await isIn("modest", "Running");

  const limit = Math.trunc((await node.available("memory.available")) / mi) - 300;
  await node.restart(`${usual}\nevictionHard: { memory.available: ${limit}Mi }`);
  // dd keeps its buffer until the pipe is read.
  const command = ["/bin/sh", "-c", "dd if=/dev/zero bs=600M count=1 | sleep 36000"];
  const hog = admin.create(boundPod("hog", { command, resources })) as { readonly metadata: { readonly uid?: string } };
  await isIn("hog", "Failed");
  const { reason, message = "" } = statusOf("hog");
  assert.equal(reason, "Evicted");
  assert.match(
    message,
    /^The node was low on resource: memory\. Threshold quantity: \S+, available: \S+\. Container c was using \S+, request is 16Mi, /u,
  );
  assert.equal(statusOf("modest").phase, "Running");
  const slice = `kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${(hog.metadata.uid ?? "").replaceAll("-", "_")}.slice`;
  await until("the hog's cgroup to be removed", async () => !cgroupIsThere(slice));
});
