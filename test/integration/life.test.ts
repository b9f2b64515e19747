import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Container } from "../../src/api/container.ts";
import type { JournalEntry } from "../../src/journal/entry.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { politeSleep } from "../support/manifests.ts";
import { patience } from "../support/patience.ts";
import { type Podwright, sleep, until, withPodwright } from "../support/podwright.ts";

type Part = Partial<Container>;

/** A container that runs the script, with `/work` for all of the pod to share. */
function shell(name: string, script: string, more: Part = {}): Part {
  return {
    name,
    image: DEMO_IMAGE,
    imagePullPolicy: "IfNotPresent",
    command: ["/bin/sh", "-c", script],
    volumeMounts: [{ name: "work", mountPath: "/work" }],
    ...more,
  };
}

/** Fails the given number of times, and then continues with the script. */
function failing(times: number, name: string, script: string): string {
  const count = `n=$(cat /work/${name} 2>/dev/null || echo 0); n=$((n + 1)); echo $n > /work/${name}`;
  return `${count}; [ $n -gt ${times} ] || exit 3; ${script}`;
}

async function start(podwright: Podwright, name: string, spec: object, wait: "ready" | "none" = "none"): Promise<void> {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 5, volumes: [{ name: "work", emptyDir: {} }], ...spec },
  };
  const path = await podwright.manifest(`${name}.yaml`, JSON.stringify(pod));
  await podwright.succeed("run", "--detach", "--wait", wait, path);
}

/** The pod's actions of these kinds, as `StartContainer app`. */
function told(entries: readonly JournalEntry[], ...whats: readonly string[]): string[] {
  return entries
    .filter(({ what, kind }) => whats.includes(what) && kind !== "outcome")
    .map(({ what, container = "" }) => `${what} ${container}`);
}

const every = { periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 30 };

// Most of the time they wait.
describe("pod lifecycle", { concurrency: 2 }, () => {
  test("the second of three init containers fails twice: only it is rerun, after its back-off, and the pod continues", async () => {
    await withPodwright(async (podwright) => {
      await start(
        podwright,
        "three",
        {
          initContainers: [
            shell("one", "echo one >> /work/order"),
            shell("two", failing(2, "two", "echo two >> /work/order")),
            shell("three", "echo three >> /work/order"),
          ],
          containers: [shell("app", `cat /work/order; ${politeSleep}`)],
        },
        "ready",
      );
      assert.equal(await podwright.succeed("logs", "three", "app"), "one\ntwo\nthree\n");
      const { initContainers, containers } = await podwright.pod("three");
      assert.deepEqual(
        [...initContainers, ...containers].map(({ name, restartCount, state }) => [name, restartCount, state]),
        [
          ["one", 0, "terminated"],
          ["two", 2, "terminated"],
          ["three", 0, "terminated"],
          ["app", 0, "running"],
        ],
      );
      const entries = await podwright.journal();
      assert.deepEqual(
        told(entries, "StartContainer").map((line) => line.split(" ")[1]),
        ["one", "two", "two", "two", "three", "app"],
      );
      const [, first, second, third] = entries.filter(
        ({ what, kind }) => what === "StartContainer" && kind === "action",
      );
      assert.ok(first && second && third);
      assert.ok(second.time - first.time < 8_000 * patience, "the first restart is at once");
      assert.ok(third.time - second.time >= 9_500, `the second came after ${third.time - second.time} ms`);
    });
  });

  test("two sidecars outlive their job, which is restarted after its failure, and end in reverse order after it", async () => {
    await withPodwright(async (podwright) => {
      const restartPolicy = "Always";
      const up = (name: string): Part => ({
        restartPolicy,
        startupProbe: { exec: { command: ["test", "-f", `/work/${name}-up`] }, ...every },
      });
      const sidecar = (name: string): string =>
        `sleep 1; touch /work/${name}-up; trap 'echo ${name} ends; exit 0' TERM; while true; do sleep 1 & wait $!; done`;
      await start(podwright, "job", {
        restartPolicy: "OnFailure",
        initContainers: [shell("outer", sidecar("outer"), up("outer")), shell("inner", sidecar("inner"), up("inner"))],
        containers: [shell("job", failing(1, "job", "ls /work; sleep 2"))],
      });
      const [job] = await podwright.waitFor("the job to succeed", ([pod]) => pod?.state === "terminated", 40_000);
      assert.equal(job?.phase, "Succeeded");
      assert.equal(job.containers[0]?.restartCount, 1);
      assert.deepEqual(
        job.initContainers.map(({ restartCount, exitCode }) => [restartCount, exitCode]),
        [
          [0, 0],
          [0, 0],
        ],
      );
      assert.match(await podwright.succeed("logs", "job", "job"), /inner-up\njob\nouter-up/, "started after both");
      const entries = (await podwright.journal()).filter(({ pod }) => pod?.name === "job");
      assert.deepEqual(told(entries, "StartContainer", "ContainerDied"), [
        "StartContainer outer",
        "StartContainer inner",
        "StartContainer job",
        "ContainerDied job",
        "StartContainer job",
        "ContainerDied job",
        "ContainerDied inner",
        "ContainerDied outer",
      ]);
      const started = (name: string): number =>
        entries.find(
          ({ what, kind, container }) => what === "StartContainer" && kind === "action" && container === name,
        )?.time ?? 0;
      assert.ok(started("inner") - started("outer") >= 1_000, "the second waits for the first one's startup probe");
      assert.ok(started("job") - started("inner") >= 1_000, "and the job for the second one's");
    });
  });

  test("a container that was healthy for a minute is restarted when its liveness fails; readiness changes without a restart", async () => {
    await withPodwright(async (podwright) => {
      const wellMs = 60_000;
      const serve = "mkdir /tmp/w; touch /tmp/w/live /tmp/w/ready; httpd -p 8080 -h /tmp/w";
      const get = (path: string): object => ({ httpGet: { path, port: 8080 } });
      const often = { periodSeconds: 1, timeoutSeconds: 5 };
      await start(
        podwright,
        "well",
        {
          containers: [
            shell("app", `${serve}; sleep ${wellMs / 1000}; rm /tmp/w/live; ${politeSleep}`, {
              livenessProbe: { ...get("/live"), ...often, failureThreshold: 3 },
            }),
            shell("gated", `sleep 3; touch /work/ready; sleep ${3 * patience}; rm /work/ready; ${politeSleep}`, {
              readinessProbe: { exec: { command: ["test", "-f", "/work/ready"] }, ...often, failureThreshold: 1 },
            }),
          ],
        },
        "none",
      );
      const gated = async (ready: boolean): Promise<void> => {
        await podwright.waitFor(`gated to be ready: ${ready}`, ([pod]) => {
          return pod?.containers[1]?.state === "running" && pod.containers[1].ready === ready && pod.ready === ready;
        });
      };
      await gated(false);
      await gated(true);
      await gated(false);
      await podwright.waitFor("the restart", ([pod]) => pod?.containers[0]?.restartCount === 1, 100_000);
      assert.equal((await podwright.container("well", "gated")).restartCount, 0, "readiness restarts nothing");
      const entries = await podwright.journal();
      const of = (what: string): JournalEntry | undefined =>
        entries.find((entry) => entry.what === what && entry.container === "app" && entry.kind === "action");
      const [startOf, stop] = [of("StartContainer"), of("StopContainer")];
      assert.ok(startOf && stop && stop.time - startOf.time >= wellMs, "not before it was unwell");
      assert.equal(stop.cause?.message, "liveness probe failed 3/3 (GET :8080/live: HTTP status 404)");
    });
  });

  test("a container that exceeds its memory limit is killed, with 137 and OOMKilled, and its sibling is not", async () => {
    await withPodwright(async (podwright) => {
      await start(podwright, "greedy", {
        restartPolicy: "Never",
        containers: [
          shell("app", "head -c 200000000 /dev/zero | tail", { resources: { limits: { memory: "24Mi" } } }),
          shell("calm", politeSleep),
        ],
      });
      const [pod] = await podwright.waitFor("the end", ([view]) => view?.containers[0]?.state === "terminated", 30_000);
      const [app, calm] = pod?.containers ?? [];
      assert.deepEqual([app?.exitCode, app?.reason, app?.restartCount], [137, "OOMKilled", 0]);
      assert.equal(calm?.state, "running");
      assert.match(
        await podwright.succeed("why", "greedy"),
        /container app is terminated: OOMKilled \(exit code 137\)/,
      );
      let word: JournalEntry | undefined;
      await until("the kernel's word to be told", async () => {
        word = (await podwright.journal()).find(({ what }) => what === "OOMKilling");
        return word !== undefined;
      });
      assert.equal(word?.container, "app");
      assert.match(word?.message ?? "", /^the kernel killed process tail: the cgroup \/\S+ was at its memory limit$/);
    });
  });

  test("containers that share their pod's process namespace see and signal each other, but not those of other pods", async () => {
    await withPodwright(async (podwright) => {
      const watch = `sleep 1; ps -o pid,args; kill $(ps -o pid,args | sed -n 's/^ *\\([0-9]*\\) sleep 4321$/\\1/p') && echo killed; ${politeSleep}`;
      const containers = [shell("app", "sleep 4321; echo woken; sleep 1000"), shell("watch", watch)];
      await start(podwright, "shared", { shareProcessNamespace: true, containers }, "ready");
      await start(podwright, "apart", { containers }, "ready");
      await until("both to have looked", async () => {
        const logs = await Promise.all(["shared", "apart"].map((pod) => podwright.succeed("logs", pod, "watch")));
        return logs.every((log) => log.includes("sleep 1"));
      });
      await sleep(1_000);
      const shared = await podwright.succeed("logs", "shared", "watch");
      assert.match(shared, /^ *1 \/catatonit -P$/m, "the sandbox's process is the first of all");
      assert.match(shared, /sleep 4321/);
      assert.match(shared, /^killed$/m);
      assert.equal(await podwright.succeed("logs", "shared", "app"), "woken\n");
      const apart = await podwright.succeed("logs", "apart", "watch");
      assert.match(apart, /^ *1 \/bin\/sh -c sleep 1; ps/m);
      assert.doesNotMatch(apart, /^killed$|catatonit/m);
      assert.equal(await podwright.succeed("logs", "apart", "app"), "");
    });
  });
});
