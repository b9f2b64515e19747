import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Container } from "../../src/api/container.ts";
import { startHealthServer } from "../support/health-server.ts";
import { podObject, type PodOptions, politeSleep } from "../support/manifests.ts";
import { patience } from "../support/patience.ts";
import { type Podwright, sleep, until, withPodwright } from "../support/podwright.ts";

type Probes = Pick<Container, "livenessProbe" | "readinessProbe" | "startupProbe">;

/** Writes the manifest of a pod whose container has these probes. */
async function probed(
  podwright: Podwright,
  name: string,
  script: string,
  probes: Probes,
  options: PodOptions & { readonly hostNetwork?: boolean } = {},
): Promise<string> {
  const pod = podObject(name, script, options) as { readonly spec: { readonly containers: readonly object[] } };
  const containers = pod.spec.containers.map((container) => ({ ...container, ...probes }));
  const spec = { ...pod.spec, containers, ...(options.hostNetwork === true && { hostNetwork: true }) };
  return await podwright.manifest(`${name}.json`, JSON.stringify({ ...pod, spec }));
}

const deaf = "trap '' TERM; while true; do sleep 1; done";
const every = { periodSeconds: 1, timeoutSeconds: 1 };

test("a container that stops responding is killed and restarted, and why shows its probe's result", async () => {
  await withPodwright(async (podwright) => {
    const dies = `mkdir /tmp/w; touch /tmp/w/healthz; httpd -p 8080 -h /tmp/w; sleep 3; rm /tmp/w/healthz; ${politeSleep}`;
    const healthz = {
      httpGet: { path: "/healthz", port: 8080 },
      ...every,
      initialDelaySeconds: 1,
      failureThreshold: 2,
    };
    const nobody = { tcpSocket: { port: 9 }, ...every, failureThreshold: 2 };
    await podwright.succeed(
      "run",
      "--detach",
      "--wait",
      "none",
      await probed(podwright, "dies", dies, { livenessProbe: healthz }),
      await probed(podwright, "once", politeSleep, { livenessProbe: nobody }, { restartPolicy: "Never" }),
      await probed(
        podwright,
        "deaf",
        deaf,
        { livenessProbe: { ...nobody, terminationGracePeriodSeconds: 2 } },
        { grace: 60 },
      ),
    );
    await podwright.waitFor("each to be killed", (pods) =>
      ["dies", "deaf"].every((name) => (pods.find((pod) => pod.name === name)?.containers[0]?.restartCount ?? 0) > 0),
    );
    const why = await podwright.succeed("why", "dies");
    assert.match(
      why.replaceAll(/\s+|\d\d:\d\d:\d\d\.\d+/g, " "),
      /because liveness probe failed 2\/2 \(GET :8080\/healthz: HTTP +status 404\)/,
    );
    await podwright.waitFor("the one that is not restarted to end", (pods) =>
      pods.some((pod) => pod.name === "once" && pod.state === "terminated"),
    );
    const entries = await podwright.journal();
    const of = (name: string) => entries.filter((entry) => entry.pod?.name === name);
    const once = of("once");
    assert.equal(once.filter((entry) => entry.kind === "action" && entry.what === "StartContainer").length, 1);
    const stop = once.find((entry) => entry.kind === "action" && entry.what === "StopContainer");
    const because = "liveness probe failed 2/2 (TCP :9: connection refused)";
    assert.equal(stop?.cause?.message, `the remaining containers (app) are not restarted: ${because}`);
    const stopDeaf = of("deaf").find((entry) => entry.kind === "action" && entry.what === "StopContainer");
    const killed = of("deaf").find((entry) => entry.what === "ContainerDied");
    assert.ok(
      stopDeaf && killed && killed.time - stopDeaf.time < 40_000 * patience,
      "the probe's grace counts, not the pod's",
    );
  });
});

test("the startup probe precedes others, dependents wait for readiness, and a probe that hangs delays no other", async () => {
  await withPodwright(async (podwright) => {
    const hangs = "nc -ll -p 7000 -e sleep 1000 & while true; do sleep 1; done";
    const slow = `sleep 3; touch /tmp/started; sleep 2; mkdir /tmp/w; httpd -p 8080 -h /tmp/w; ${politeSleep}`;
    const hanging = await probed(podwright, "hanging", hangs, {
      readinessProbe: { httpGet: { port: 7000 }, periodSeconds: 1, timeoutSeconds: 60 },
      livenessProbe: { exec: { command: ["sleep", "60"] }, periodSeconds: 1, timeoutSeconds: 60 },
    });
    await podwright.succeed("run", "--detach", "--wait", "none", hanging);
    const path = await probed(podwright, "slow", slow, {
      startupProbe: { exec: { command: ["test", "-f", "/tmp/started"] }, ...every, failureThreshold: 30 },
      livenessProbe: { exec: { command: ["test", "-f", "/tmp/started"] }, ...every, failureThreshold: 1 },
      readinessProbe: { tcpSocket: { port: 8080 }, ...every },
    });
    const began = performance.now();
    await podwright.succeed("run", "--detach", "--wait", "ready", path);
    const tookMs = performance.now() - began;
    assert.ok(tookMs > 4_800 && tookMs < 40_000 * patience, `ready after ${tookMs} ms`);
    assert.equal((await podwright.container("slow", "app")).restartCount, 0);
    assert.equal((await podwright.container("hanging", "app")).ready, false);
    const entries = (await podwright.journal()).filter((entry) => entry.pod?.name === "slow");
    const states = entries.filter((entry) => entry.what === "ContainerStateChanged").map(({ message }) => message);
    assert.deepEqual(states.slice(-2), ["container app is running, not ready", "container app is running and ready"]);
    assert.ok(entries.some(({ message }) => message.startsWith("startup probe failed 1/30 (exec test: exit code 1")));
    assert.ok(!entries.some(({ message }) => message.startsWith("liveness probe failed")));
  });
});

test("gRPC health decides a pod's readiness, and a restart of podwright changes nothing", async () => {
  await using server = await startHealthServer();
  await withPodwright(async (podwright) => {
    const readinessProbe = { grpc: { port: server.port }, ...every, failureThreshold: 2 };
    const path = await probed(podwright, "grpc", politeSleep, { readinessProbe }, { hostNetwork: true });
    const isReady = async (ready: boolean): Promise<void> => {
      await podwright.waitFor(`ready: ${ready}`, (pods) =>
        pods.some((pod) => pod.name === "grpc" && pod.ready === ready),
      );
    };
    await podwright.succeed("run", "--detach", "--wait", "ready", path);
    server.serving = false;
    await isReady(false);
    server.serving = true;
    await isReady(true);
    const { uid } = await podwright.pod("grpc");
    // What is not on disk yet would be lost with the process: the pod would be as it was before.
    await until("the journal on disk to say that the pod is ready", async () => {
      const states = (await podwright.journalOnDisk()).filter(({ what }) => what === "ContainerStateChanged");
      return states.at(-1)?.message === "container app is running and ready";
    });

    await podwright.kill(await podwright.enginePid());
    const before = (await podwright.journal()).length;
    await podwright.succeed("run", "--detach", "--wait", "ready", path);
    await sleep(1500);
    assert.equal((await podwright.pod("grpc")).uid, uid);
    const since = (await podwright.journal()).slice(before).filter((entry) => entry.pod?.uid === uid);
    const states = since.filter((entry) => entry.what === "ContainerStateChanged").map(({ message }) => message);
    assert.deepEqual(
      states.filter((message) => !message.endsWith("running and ready")),
      [],
    );
    assert.ok(!since.some((entry) => entry.kind === "action"), "the running container is left alone");
  });
});

test("a probe command that prints a secret is reported without it, in the journal and the recording", async () => {
  await withPodwright(async (podwright) => {
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "login" },
      stringData: { password: "swordfish-7" },
    };
    await podwright.manifest("secret.json", JSON.stringify(secret));
    const pod = podObject("talker", politeSleep, {}) as { readonly spec: { readonly containers: readonly object[] } };
    const env = [{ name: "P", valueFrom: { secretKeyRef: { name: "login", key: "password" } } }];
    const says = (what: string) => ({ exec: { command: ["sh", "-c", `echo ${what} says $P; exit 1`] } });
    const more = {
      env,
      livenessProbe: { ...says("probe"), ...every, failureThreshold: 1 },
      lifecycle: { preStop: says("hook") },
    };
    const containers = pod.spec.containers.map((container) => ({ ...container, ...more }));
    const manifest = JSON.stringify({ ...pod, spec: { ...pod.spec, containers } });
    const recording = podwright.path("node.rec");
    await podwright.succeed(
      ...["run", "--detach", "--wait", "none", "--record", recording],
      ...[podwright.path("secret.json"), await podwright.manifest("talker.json", manifest)],
    );
    await podwright.waitFor("its restart", (pods) => (pods[0]?.containers[0]?.restartCount ?? 0) > 0);
    const why = (await podwright.succeed("why", "talker")).replaceAll(/\s+/g, " ");
    assert.match(why, /probe says <secret login\/password>/);
    const files = [recording, podwright.path("engine.log")];
    for (const name of await readdir(podwright.layout.journal)) files.push(join(podwright.layout.journal, name));
    const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
    assert.match(texts.join("\n"), /hook says <secret login\/password>/);
    for (const text of [why, await podwright.succeed("timeline", "talker", "--json"), ...texts]) {
      assert.ok(!text.includes("swordfish"), text);
    }
  });
});
