import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { RunningCommand } from "../support/command.ts";
import { noControlPlane } from "../support/control-plane.ts";
import { freePort } from "../support/free-port.ts";
import { type Kubectl, noKubectl } from "../support/kubectl.ts";
import { limitMs, type Member, image, withMember, workload } from "../support/member.ts";
import { until } from "../support/podwright.ts";

const scale = 30;

async function joins(member: Member): Promise<void> {
  const { kubectl } = member;
  await member.shows(/^node1 +Ready/m, "get", "nodes");
  assert.match(await kubectl.succeed("get", "csr"), /kube-apiserver-client-kubelet.*Approved,Issued/);
  await member.approveServing();
  const summary = await kubectl.succeed("get", "--raw", "/api/v1/nodes/node1/proxy/stats/summary");
  assert.match(summary, /"nodeName": ?"node1"/);
  await member.shows(/^static-node1 .*Running/m, "get", "pods");
}

async function deploys(member: Member): Promise<void> {
  const { kubectl, node } = member;
  await member.apply(workload("Deployment", "web", { replicas: 3 }));
  await member.rolledOut("deployment/web");
  await kubectl.succeed("set", "env", "deployment/web", "VERSION=2");
  await member.rolledOut("deployment/web");
  assert.match(await kubectl.succeed("logs", "deployment/web"), /serving/);
  assert.equal(await kubectl.succeed("exec", "deployment/web", "--", "sh", "-c", "echo $VERSION"), "2\n");
  const token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  assert.match(await kubectl.succeed("exec", "deployment/web", "--", "cat", token), /^ey[\w-]+\.[\w-]+\.[\w-]+$/);
  await forwards(kubectl);
  const [one] = await member.pods("app=web");
  const events = /Normal\s+Scheduled[^]*Normal\s+Started\s+\S+\s+kubelet/;
  await member.shows(events, "describe", "pod", one?.metadata.name ?? "");
  await kubectl.succeed("scale", "deployment/web", `--replicas=${scale}`);
  await member.rolledOut("deployment/web");
  assert.equal((await node.podwright.pods()).filter(({ name }) => name.startsWith("web-")).length, scale);
}

async function forwards(kubectl: Kubectl): Promise<void> {
  const port = await freePort();
  const forward = kubectl.start("port-forward", "deployment/web", `${port}:80`);
  try {
    const answers = async (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${port}/index.html`).then(
        async (response) => (await response.text()) === "page\n",
        () => false,
      );
    await until("the forwarded port to answer", answers);
  } finally {
    forward.kill("SIGTERM");
    await once(forward, "exit");
  }
}

/** A restart of podwright that is invisible in the cluster. */
async function restarts(member: Member, kubelet: RunningCommand): Promise<RunningCommand> {
  const { kubectl, node } = member;
  const identity = async (): Promise<unknown> =>
    (await member.pods("app=web")).map(({ metadata, status }) => [
      metadata.name,
      status.containerStatuses?.map(({ containerID, restartCount, ready }) => [containerID, restartCount, ready]),
      status.conditions?.map(({ type, status: is, lastTransitionTime }) => [type, is, lastTransitionTime]),
    ]);
  const before = await identity();
  kubelet.child.kill("SIGKILL");
  await kubelet.ended;
  const next = member.start();
  await node.answers();
  const allReady = async (): Promise<boolean> =>
    (await node.podwright.pods()).filter(({ name, ready }) => ready && name.startsWith("web-")).length === scale;
  await until("all pods to be taken up", allReady, limitMs);
  await kubectl.succeed("wait", "--for=condition=Ready", "node/node1", "--timeout=60s");
  assert.deepEqual(await identity(), before);
  return next;
}

async function others(member: Member): Promise<void> {
  const { kubectl } = member;
  const fails = { name: "c", image, imagePullPolicy: "Never", command: ["sh", "-c", "echo attempt; exit 1"] };
  const works = { ...fails, command: ["sh", "-c", "test $JOB_COMPLETION_INDEX = 1 || sleep 1"] };
  await member.apply(
    workload("StatefulSet", "db", { replicas: 2, serviceName: "db" }),
    workload("DaemonSet", "agent", {}, { hostNetwork: true, tolerations: [{ operator: "Exists" }] }),
    workload(
      "Job",
      "good",
      { completions: 2, completionMode: "Indexed" },
      { restartPolicy: "Never", containers: [works] },
    ),
    workload("Job", "bad", { backoffLimit: 1 }, { restartPolicy: "Never", containers: [fails] }),
  );
  await member.rolledOut("statefulset/db");
  await kubectl.succeed("wait", "--for=condition=complete", "job/good", "--timeout=180s");
  await kubectl.succeed("wait", "--for=condition=failed", "job/bad", "--timeout=180s");
  await kubectl.succeed("rollout", "restart", "statefulset/db");
  await member.rolledOut("statefulset/db");
  assert.equal((await member.pods("app=db")).length, 2);
}

async function ends(member: Member): Promise<void> {
  const { kubectl, node } = member;
  await kubectl.succeed("scale", "deployment/web", "--replicas=4");
  await member.shows(/^4$/m, "get", "deployment/web", "-o", "jsonpath={.status.replicas}{'\\n'}");
  const drained = await kubectl.succeed("drain", "node1", "--ignore-daemonsets", "--force", "--timeout=120s");
  assert.match(drained, /pod\/web-\S+ evicted/);
  await kubectl.succeed("uncordon", "node1");
  await member.rolledOut("deployment/web");
  await kubectl.succeed("delete", "deployment,statefulset,daemonset,job", "--all", "--timeout=180s");
  await node.remove("static.yaml");
  await member.shows(/No resources found/, "get", "pods");
  await until("the node to be empty", async () => (await node.podwright.pods()).length === 0, limitMs);
}

async function play(member: Member): Promise<void> {
  const first = member.start();
  await joins(member);
  await deploys(member);
  const kubelet = await restarts(member, first);
  await others(member);
  await ends(member);
  kubelet.child.kill("SIGTERM");
  await kubelet.ended;
}

const title =
  "a node joins Kubernetes' own control plane, does what its controllers ask for, and outlives a kill and a drain";
test(title, { skip: noControlPlane || noKubectl }, async () => {
  await withMember("rotateCertificates: true\nserverTLSBootstrap: true\n", play);
});
