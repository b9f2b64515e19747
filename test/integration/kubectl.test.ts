import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { Kubectl, kubectls, noKubectl } from "../support/kubectl.ts";
import { assertFineGrained } from "../support/fine-grained.ts";
import { until } from "../support/podwright.ts";
import { noPty } from "../support/pty.ts";
import { echoIntact, forwardIntact, streamImage, streamPod } from "../support/streams.ts";

const mebibyte = 1 << 20;

/** How kubectl streamed before it did by WebSocket, and still does where an API server has nothing else. */
const spdy = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "false", KUBECTL_PORT_FORWARD_WEBSOCKETS: "false" } as const;

async function kubectlOf(
  { server, node: { podwright } }: ClusterNode,
  program?: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<Kubectl> {
  const path = podwright.path("kubectl-config");
  await writeFile(path, server.kubeconfig(), { mode: 0o600 });
  return new Kubectl(path, podwright.layout.stateDirectory, program, environment);
}

async function useTerminal(kubectl: Kubectl): Promise<void> {
  using shell = kubectl.startOnTerminal("exec", "-it", "web", "-c", "c", "--", "sh");
  shell.resize(31, 97);
  await shell.shows(/# /);
  await until("the first size", async () => {
    shell.type("stty size\r");
    await new Promise((done) => setTimeout(done, 300));
    return shell.shown.includes("\n31 97\r\n");
  });
  shell.resize(40, 120);
  await until("the new size", async () => {
    shell.type("stty size\r");
    await new Promise((done) => setTimeout(done, 300));
    return shell.shown.includes("\n40 120\r\n");
  });
  shell.type("exit 5\r");
  assert.equal(await shell.ended, 5);
}

async function logsExecCopyAttach(cluster: ClusterNode, kubectl: Kubectl): Promise<void> {
  const { podwright } = cluster.node;
  assert.equal(await kubectl.succeed("logs", "web", "-c", "c"), "started\n");
  assert.match(await kubectl.succeed("logs", "web", "-c", "c", "--timestamps"), /^\d{4}-\d\d-\d\dT\S+ started\n$/);
  const missing = await kubectl.run(["logs", "web", "-c", "c", "--previous"]);
  assert.match(missing.stderr, /previous terminated container "c" in pod "web" not found/);

  const failed = await kubectl.run(["exec", "web", "-c", "c", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
  assert.deepEqual([failed.code, failed.stdout.toString()], [7, "out\n"]);
  assert.match(failed.stderr, /^err\n/);
  const absent = await kubectl.run(["exec", "web", "-c", "c", "--", "no-such-program"]);
  assert.notEqual(absent.code, 0);
  assert.match(absent.stderr, /no-such-program/);
  const counted = await kubectl.run(["exec", "-i", "web", "-c", "c", "--", "wc", "-c"], Buffer.alloc(3_000_000));
  assert.equal(counted.stdout.toString().trim(), "3000000");

  await podwright.manifest("there", "to and fro");
  await kubectl.succeed("cp", "-c", "c", podwright.path("there"), "web:/tmp/there");
  await kubectl.succeed("cp", "-c", "c", "web:/tmp/there", podwright.path("back"));
  assert.equal(await readFile(podwright.path("back"), "utf8"), "to and fro");
  await mkdir(podwright.path("tree/below"), { recursive: true });
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => index % 256));
  await writeFile(podwright.path("tree/below/bytes"), bytes);
  await kubectl.succeed("cp", "-c", "c", podwright.path("tree"), "web:/tmp/copied");
  await kubectl.succeed("cp", "-c", "c", "web:/tmp/copied", podwright.path("tree-back"));
  assert.deepEqual(await readFile(podwright.path("tree-back/below/bytes")), bytes);
  await rm(podwright.path("tree-back"), { recursive: true });
  await kubectl.succeed("exec", "web", "-c", "c", "--", "rm", "-r", "/tmp/copied");

  const attached = kubectl.start("attach", "-i", "web", "-c", "reader");
  let answer = "";
  attached.stdout?.on("data", (chunk: Buffer) => (answer += chunk.toString()));
  try {
    await until("an answer to a line", async () => {
      attached.stdin?.write("a line\n");
      return answer.includes("got a line\n");
    });
  } finally {
    attached.kill("SIGKILL");
  }
}

test("kubectl top shows the scraped usage of nodes and pods", { skip: noKubectl }, async (t) => {
  await withClusterNode(async (cluster) => {
    await cluster.nodeReady();
    cluster.server.admin.create(streamPod);
    await cluster.ready("web");
    await t.test("who was granted a subresource of nodes sees what belongs to it and nothing else", () => {
      return assertFineGrained(cluster);
    });
    for (const program of kubectls) {
      const kubectl = await kubectlOf(cluster, program);
      const nodes = await kubectl.succeed("top", "node");
      assert.match(nodes, /^NAME\s+CPU\(cores\).*\nnode1\s+\d+m\s+\d+%\s+\d+Mi\s+\d+%\s*\n$/u);
      const pods = await kubectl.succeed("top", "pod", "--containers");
      assert.match(pods, /^POD\s+NAME.*\nweb\s+c\s+\d+m\s+\d+Mi\s*\nweb\s+reader\s+\d+m\s+\d+Mi\s*\n$/u);
    }
    cluster.server.admin.delete("pods", "default/web");
    await cluster.gone("web");
  }, streamImage);
});

test("kubectl logs, exec, cp, attach and port-forward through an API server", { skip: noKubectl }, async (t) => {
  await withClusterNode(async (cluster) => {
    await cluster.nodeReady();
    cluster.server.admin.create(streamPod);
    await cluster.ready("web");
    for (const program of kubectls) {
      const kubectl = await kubectlOf(cluster, program);
      const version = /v[\d.]+/.exec(await kubectl.succeed("version", "--client"))?.[0];
      await t.test(`kubectl ${version}: logs, exec, cp, attach`, () => logsExecCopyAttach(cluster, kubectl));
      await t.test(`kubectl ${version}: a terminal`, { skip: noPty }, () => useTerminal(kubectl));
      await t.test(`kubectl ${version}: 32 MiB to a command and back`, () => echoIntact(kubectl, 32 * mebibyte));
      await t.test(`kubectl ${version}: 50 connections to a port at once`, () => {
        return forwardIntact(kubectl, 50, mebibyte / 2);
      });
      const old = await kubectlOf(cluster, program, spdy);
      await t.test(`kubectl ${version} by SPDY: 8 MiB to a command and back`, () => echoIntact(old, 8 * mebibyte));
      await t.test(`kubectl ${version} by SPDY: 10 connections to a port at once`, () => {
        return forwardIntact(old, 10, mebibyte / 2);
      });
      const failed = await old.run(["exec", "web", "-c", "c", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
      assert.deepEqual([failed.code, failed.stdout.toString(), failed.stderr.startsWith("err\n")], [7, "out\n", true]);
    }
    cluster.server.admin.delete("pods", "default/web");
    await cluster.gone("web");
  }, streamImage);
});

/** A kubectl that follows a log, with what it has printed. */
function follow(kubectl: Kubectl): { readonly child: ChildProcess; text: string } {
  const following = { child: kubectl.start("logs", "-f", "web"), text: "" };
  following.child.stdout?.on("data", (chunk: Buffer) => (following.text += chunk.toString()));
  return following;
}

test("kubectl logs -f continues over rotation and a restart, each line once", { skip: noKubectl }, async () => {
  // Six hundred lines are several times what a log may have before it is rotated.
  const lines =
    "n=0; while [ $n -lt 600 ]; do n=$((n+1)); echo line $n of many; [ $((n % 20)) = 0 ] && sleep 0.4; done";
  const script = `trap 'exit 0' TERM; ${lines}; while true; do sleep 0.2; done`;
  const settings = "containerLogMonitorInterval: 3s\ncontainerLogMaxSize: 4Ki\ncontainerLogMaxFiles: 9\n";
  await withClusterNode(
    async (cluster) => {
      await cluster.nodeReady();
      const command = ["sh", "-c", script];
      const container = { name: "c", image: streamImage, imagePullPolicy: "Never", command };
      cluster.server.admin.create({
        ...streamPod,
        spec: { ...(streamPod["spec"] as object), containers: [container] },
      });
      await cluster.ready("web");
      const kubectl = await kubectlOf(cluster);
      const followers = await Promise.all(kubectls.map(async (program) => follow(await kubectlOf(cluster, program))));
      const expected = Array.from({ length: 600 }, (_, index) => `line ${index + 1} of many\n`).join("");
      const haveAll = async (what: string, length: number): Promise<void> => {
        const ends = (): string => followers.map(({ text }) => text.slice(-100)).join("; ");
        const all = async (): Promise<boolean> => followers.every(({ text }) => text.length >= length);
        await until(() => `${what}; got ${ends()}`, all, 60_000);
      };
      try {
        await haveAll("the last line", expected.length);
        for (const { text } of followers) assert.equal(text, expected);
        await kubectl.run(["exec", "web", "--", "kill", "-TERM", "1"]);
        await haveAll("the next instance's lines", 2 * expected.length);
        for (const { text } of followers) assert.equal(text, expected + expected);
      } finally {
        for (const { child } of followers) child.kill("SIGKILL");
      }
      assert.match(await kubectl.succeed("logs", "web", "--previous"), /line 600 of many\n$/);
      cluster.server.admin.delete("pods", "default/web");
      await cluster.gone("web");
    },
    streamImage,
    settings,
  );
});
