import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import type { PodView } from "../../src/server/local-api.ts";
import { podObject, politeSleep } from "../support/manifests.ts";
import { until } from "../support/podwright.ts";
import { KubeletService } from "./kubelet-service.ts";
import { run } from "./machine.ts";

/**
 * Node shutdown against the real systemd-logind. The machine stays on: its poweroff.target is replaced by one that does
 * nothing, so that logind announces a shutdown, waits for its inhibitors, and then announces that it is over.
 */
const target = "/run/systemd/system/poweroff.target";
const names = ["low", "middle", "high"] as const;
const groupSeconds = 30;

writeTarget();
run("systemctl", ["start", "systemd-logind"]);
const periods = names.map((_, index) => `{ priority: ${index * 100}, shutdownGracePeriodSeconds: ${groupSeconds} }`);
const node = await KubeletService.start(`shutdownGracePeriodByPodPriority: [${periods.join(", ")}]`);
after(async () => {
  await node[Symbol.asyncDispose]();
  rmSync(target);
  run("systemctl", ["daemon-reload"]);
});

function writeTarget(): void {
  mkdirSync("/run/systemd/system", { recursive: true });
  writeFileSync(target, "[Unit]\nDescription=A shutdown that leaves the machine on\n");
  run("systemctl", ["daemon-reload"]);
}

function ofLogind(property: string): string {
  const [, value = ""] = run("busctl", [
    ...[
      "get-property",
      "org.freedesktop.login1",
      "/org/freedesktop/login1",
      "org.freedesktop.login1.Manager",
      property,
    ],
  ]).split(" ");
  return value;
}

function journal(unit: string): string[] {
  return run("journalctl", ["--unit", unit, "--no-pager", "--output=short-monotonic"]).split("\n");
}

/** `shutdown kubelet delay` of each of the kubelet's inhibitors. */
function inhibitors(): string[] {
  const all = run("systemd-inhibit", ["--list", "--no-legend", "--no-pager"]).split("\n");
  return all.filter((line) => line.startsWith("kubelet "));
}

function write(name: string, priority: number, hangs = false): void {
  const pod = podObject(name, politeSleep, { grace: 45 }) as { readonly spec: { readonly containers: object[] } };
  const lifecycle = { preStop: { exec: { command: ["/bin/sleep", "600"] } } };
  const containers = pod.spec.containers.map((container) => ({ ...container, ...(hangs && { lifecycle }) }));
  node.write(name, { ...pod, spec: { ...pod.spec, priority, containers } });
}

const ended = ({ containers: [app] }: PodView): boolean => app?.state === "terminated";

test("logind's shutdown waits for pods by priority, a hanging hook only for its group's time, and a cancelled one restarts them", async () => {
  write("low", 0);
  write("middle", 100, true);
  write("high", 1000);
  for (const name of names) await node.pod(name);
  await until("the lock", async () => inhibitors().length === 1);
  assert.match(inhibitors()[0] ?? "", /shutdown +Kubelet needs time to handle node shutdown +delay$/u);
  // Its default is 5 s.
  assert.equal(ofLogind("InhibitDelayMaxUSec"), String(names.length * groupSeconds * 1e6));

  const beganMs = Date.now();
  run("systemctl", ["poweroff", "--check-inhibitors=no"]);
  const [low, high] = [await node.pod("low", ended), await node.pod("high", ended)];
  await until("the shutdown to be over", async () => ofLogind("PreparingForShutdown") === "false");
  const tookMs = Date.now() - beganMs;
  const [lowEnd = 0, highEnd = 0] = [low.containers[0]?.finishedAt, high.containers[0]?.finishedAt];
  console.log(`low ended after ${lowEnd - beganMs} ms, high after ${highEnd - beganMs}, the shutdown after ${tookMs}`);
  assert.ok(highEnd - lowEnd >= groupSeconds * 1000, "the hanging hook's group lies between them");
  const groups = journal("podwright.service").filter((line) => line.includes("shutdown group"));
  console.log(groups.join("\n"));
  assert.deepEqual(
    groups.map((line) => line.includes("timed out")),
    [false, true, false],
  );
  const timeouts = journal("systemd-logind.service").filter((line) => line.includes("inhibitor timeout is reached"));
  assert.deepEqual(timeouts, [], "the kubelet releases its lock in time");
  const state = readFileSync("/var/lib/kubelet/graceful_node_shutdown_state", "utf8");
  // What the Go kubelet reads of it comes first.
  assert.match(
    state,
    /^\{"startTime":"2\d{3}-[^"]*","endTime":"2\d{3}-[^"]*","boot":"[^"]+","group":\{"priority":200,/u,
  );

  for (const name of names) await node.pod(name);
  await until("another lock", async () => inhibitors().length === 1);
});
