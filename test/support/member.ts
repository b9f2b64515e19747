import assert from "node:assert/strict";
import { appendFile, writeFile } from "node:fs/promises";
import type { PodStatus } from "../../src/api/status.ts";
import type { RunningCommand } from "./command.ts";
import { ControlPlane } from "./control-plane.ts";
import type { Kubectl } from "./kubectl.ts";
import { KubeletNode } from "./kubelet-node.ts";
import { patience } from "./patience.ts";
import { until } from "./podwright.ts";

/** The name of the built-in demo image here. */
export const image = "docker.io/library/busybox:latest";
/** For slow operations of a real control plane. */
export const limitMs = 180_000;

interface ListedPod {
  readonly metadata: { readonly name: string };
  readonly status: PodStatus;
}

/** A node that joined Kubernetes' own control plane with a bootstrap token; tests use only kubectl. */
export class Member {
  readonly plane: ControlPlane;
  readonly node: KubeletNode;
  readonly kubectl: Kubectl;

  constructor(plane: ControlPlane, node: KubeletNode) {
    this.plane = plane;
    this.node = node;
    this.kubectl = plane.kubectl();
  }

  /** The flags that join this cluster. */
  get flags(): readonly string[] {
    const { podwright } = this.node;
    return [
      ...["--kubeconfig", podwright.path("kubeconfig"), "--bootstrap-kubeconfig", podwright.path("bootstrap")],
      ...["--client-ca-file", this.plane.authorityFile, "--authorization-mode", "Webhook"],
    ];
  }

  /** Starts podwright; it may not be running yet when this returns. */
  start(): RunningCommand {
    return this.node.startKubelet(...this.flags);
  }

  /** Polls until kubectl's output matches. */
  async shows(pattern: RegExp, ...words: readonly string[]): Promise<string> {
    let last = "";
    const isSo = async (): Promise<boolean> => {
      const { code, stdout, stderr } = await this.kubectl.run(words);
      last = `${stdout.toString("utf8")}${stderr}`;
      return code === 0 && pattern.test(last);
    };
    await until(() => `kubectl ${words.join(" ")} to show ${String(pattern)}; it shows ${last}`, isSo, limitMs);
    return last;
  }

  async apply(...objects: readonly object[]): Promise<void> {
    const list = { apiVersion: "v1", kind: "List", items: objects };
    const { code, stderr } = await this.kubectl.run(["apply", "-f", "-"], Buffer.from(JSON.stringify(list)));
    assert.equal(code, 0, stderr);
  }

  /** Approves the serving certificate, because no controller does; waits until the API server reaches the node. */
  async approveServing(): Promise<void> {
    const pattern = new RegExp(`^(\\S+).*kubelet-serving +system:node:${this.node.name} .*Pending`, "m");
    const name = pattern.exec(await this.shows(pattern, "get", "csr"))?.[1] ?? "";
    await this.kubectl.succeed("certificate", "approve", name);
    await this.shows(/ok/, "get", "--raw", `/api/v1/nodes/${this.node.name}/proxy/healthz`);
  }

  async rolledOut(what: string): Promise<void> {
    await this.kubectl.succeed("rollout", "status", what, `--timeout=${180 * patience}s`);
  }

  async pods(selector: string): Promise<readonly ListedPod[]> {
    const text = await this.kubectl.succeed("get", "pods", "-l", selector, "-o", "json");
    return (JSON.parse(text) as { readonly items: readonly ListedPod[] }).items;
  }
}

/** A workload of that kind, whose pods have one container that serves a page. */
export function workload(kind: string, name: string, spec: object, pod: object = {}): object {
  const labels = { app: name };
  const container = {
    name: "c",
    image,
    imagePullPolicy: "Never",
    command: [
      "sh",
      "-c",
      "trap 'exit 0' TERM; echo serving; echo page > /tmp/index.html; httpd -p 80 -h /tmp; sleep 3600 & wait",
    ],
  };
  const template = {
    metadata: { labels },
    spec: { terminationGracePeriodSeconds: 2, containers: [container], ...pod },
  };
  const selector = kind === "Job" ? {} : { selector: { matchLabels: labels } };
  const apiVersion = kind === "Job" ? "batch/v1" : "apps/v1";
  return { apiVersion, kind, metadata: { name }, spec: { ...selector, template, ...spec } };
}

/** The permissions for joining by token. */
export async function letNodesJoin(kubectl: Kubectl): Promise<void> {
  const bindings = [
    ["joiners-ask", "system:node-bootstrapper", "system:bootstrappers"],
    ["joiners-get", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", "system:bootstrappers"],
    ["nodes-renew", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes"],
  ] as const;
  for (const [name, role, group] of bindings) {
    await kubectl.succeed("create", "clusterrolebinding", name, `--clusterrole=${role}`, `--group=${group}`);
  }
}

/** Passes a node that may join a control plane to the work, and cleans up in any case. */
export async function withMember(settings: string, work: (member: Member) => Promise<void>): Promise<void> {
  await withMembers(settings, ["node1"], async ([member]) => {
    if (member !== undefined) await work(member);
  });
}

/** Passes nodes of those names that may join one control plane to the work, and cleans up in any case. */
export async function withMembers(
  settings: string,
  names: readonly string[],
  work: (members: readonly Member[]) => Promise<void>,
): Promise<void> {
  await using cleanUps = new AsyncDisposableStack();
  const nodes: KubeletNode[] = [];
  for (const name of names) {
    const node = await KubeletNode.open(name);
    cleanUps.defer(async () => node.podwright.cleanUp());
    await node.startContainerd(image);
    await appendFile(node.podwright.path("kubelet.yaml"), settings);
    await node.write("static.yaml", JSON.stringify(staticPod));
    nodes.push(node);
  }
  const [first] = nodes;
  assert.ok(first !== undefined);
  const plane = cleanUps.use(await ControlPlane.start(first.podwright.path("plane")));
  for (const { podwright } of nodes) {
    await writeFile(podwright.path("bootstrap"), plane.bootstrapKubeconfig(), { mode: 0o600 });
  }
  const members = nodes.map((node) => new Member(plane, node));
  try {
    await letNodesJoin(plane.kubectl());
    await work(members);
  } catch (error) {
    for (const { podwright } of nodes) console.error(await podwright.evidence());
    console.error(await plane.evidence());
    throw error;
  }
}

/** A static pod for {@link KubeletNode.write}. */
export const staticPod = {
  apiVersion: "v1",
  kind: "Pod",
  // With its own UID it is the same pod for every kubelet.
  metadata: { name: "static", uid: "5fb5aa2c-4e5b-4c2f-b1b8-6c2d9e0f6f11" },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: "c", image, imagePullPolicy: "Never", command: ["sleep", "3600"] }],
  },
};
