import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JournalEntry } from "../../src/journal/entry.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { podManifest, politeSleep } from "../support/manifests.ts";
import { patience } from "../support/patience.ts";
import { type Podwright, sleep, withPodwright } from "../support/podwright.ts";

async function manifests(podwright: Podwright, texts: Readonly<Record<string, string>>): Promise<string[]> {
  return Promise.all(Object.entries(texts).map(([name, text]) => podwright.manifest(`${name}.yaml`, text)));
}

const named = (pods: readonly PodView[], name: string): PodView | undefined => pods.find((pod) => pod.name === name);

/** The journal's line of one action of a pod. */
function action(entries: readonly JournalEntry[], uid: string, what: string, nth = 0): JournalEntry {
  const found = entries.filter((entry) => entry.kind === "action" && entry.what === what && entry.pod?.uid === uid)[
    nth
  ];
  assert.ok(found, `${what} of ${uid} is not in the journal`);
  return found;
}

// Two at a time: most of the time they wait.
describe("restarts and stops", { concurrency: 2 }, () => {
  test("ended containers are restarted following their policy: first at once, then after a back-off that ps and why show", async () => {
    await withPodwright(async (podwright) => {
      const once = (code: number) => `sleep 1; exit ${code}`;
      const paths = await manifests(podwright, {
        "always-ok": podManifest("always-ok", once(0)),
        "onfailure-ok": podManifest("onfailure-ok", once(0), { restartPolicy: "OnFailure" }),
        "onfailure-bad": podManifest("onfailure-bad", once(3), { restartPolicy: "OnFailure" }),
        "never-ok": podManifest("never-ok", once(0), { restartPolicy: "Never" }),
        "never-bad": podManifest("never-bad", once(3), { restartPolicy: "Never" }),
      });
      await podwright.run(["run", "--detach", "--wait", "none", ...paths]);
      const crashing = ["always-ok", "onfailure-bad"];
      const pods = await podwright.waitFor("two in back-off, three at their end", (all) => {
        const waits = crashing.every((name) => named(all, name)?.containers[0]?.reason === "CrashLoopBackOff");
        return (
          waits && ["onfailure-ok", "never-ok", "never-bad"].every((name) => named(all, name)?.state === "terminated")
        );
      });
      assert.deepEqual(
        pods.map(({ name, phase, containers }) => [name, phase, containers[0]?.restartCount, containers[0]?.exitCode]),
        [
          ["always-ok", "Running", 1, 0],
          ["never-bad", "Failed", 0, 3],
          ["never-ok", "Succeeded", 0, 0],
          ["onfailure-bad", "Running", 1, 3],
          ["onfailure-ok", "Succeeded", 0, 0],
        ],
      );
      assert.match(
        named(pods, "onfailure-bad")?.containers[0]?.message ?? "",
        /^back-off 10s restarting failed container=app pod=onfailure-bad_default\(/,
      );
      assert.match(await podwright.succeed("ps"), /onfailure-bad +0\/1 +CrashLoopBackOff +1 \(\d+s ago\)/);
      const why = await podwright.succeed("why", "onfailure-bad");
      assert.match(why, /container app exited with code 3 \(Error\)/);
      assert.match(why, /next +container app waits 10 s before its next restart \(in [\d.]+ s\)/);

      const entries = await podwright.journal();
      for (const name of crashing) {
        const { uid = "" } = named(pods, name) ?? {};
        const died = entries.find((entry) => entry.what === "ContainerDied" && entry.pod?.uid === uid);
        const restarted = action(entries, uid, "CreateContainer", 1);
        assert.ok(died && restarted.time - died.time < 8_000 * patience, `${name}: the first restart comes at once`);
        assert.equal(restarted.cause?.code, "ContainerExited");
      }
    });
  });

  test("a container that ignores SIGTERM is killed after its grace period, others end by themselves", async () => {
    await withPodwright(async (podwright) => {
      const deaf = "trap '' TERM; while true; do sleep 1; done";
      const slow = "trap 'sleep 1; echo bye; exit 7' TERM; while true; do sleep 1 & wait $!; done";
      const paths = await manifests(podwright, {
        deaf: podManifest("deaf", deaf, { grace: 3 }),
        slow: podManifest("slow", slow, { grace: 20 }),
      });
      await podwright.succeed("run", "--detach", ...paths);
      const before = await podwright.pods();
      const follow = podwright.start(["logs", "-f", "slow"]);
      const stop = async (name: string): Promise<number> => {
        const started = performance.now();
        await podwright.succeed("stop", name);
        return performance.now() - started;
      };
      const [deafMs, slowMs] = await Promise.all([stop("deaf"), stop("slow")]);
      assert.ok(deafMs > 2_900 && deafMs < 20_000 * patience, `killed after ${deafMs} ms`);
      assert.ok(slowMs > 900 && slowMs < 18_000 * patience, `ended after ${slowMs} ms`);
      assert.equal((await follow.ended).stdout, "bye\n");
      const entries = await podwright.journal();
      const died = (name: string) =>
        entries.find((entry) => entry.what === "ContainerDied" && entry.pod?.uid === named(before, name)?.uid)?.message;
      assert.match(died("deaf") ?? "", /exited with code 137/);
      assert.match(died("slow") ?? "", /exited with code 7/);
    });
  });

  test("a changed manifest replaces its pod: the old one ends before the new one starts; an equal one changes nothing", async () => {
    await withPodwright(async (podwright) => {
      const slow = "trap 'sleep 2; exit 0' TERM; while true; do sleep 1 & wait $!; done";
      const path = await podwright.manifest("web.yaml", podManifest("web", slow, { hostPort: 18_432 }));
      await podwright.succeed("run", "--detach", path);
      const old = await podwright.pod("web");

      await podwright.succeed("run", "--detach", path);
      await sleep(500);
      assert.deepEqual(await podwright.pod("web"), old, "the same file again changes nothing");

      await podwright.manifest("web.yaml", podManifest("web", politeSleep, { hostPort: 18_432 }));
      await podwright.succeed("run", "--detach", path);
      const pods = await podwright.pods();
      assert.equal(pods.length, 1);
      const [replacement] = pods;
      assert.ok(replacement !== undefined && replacement.uid !== old.uid);

      const entries = await podwright.journal();
      const gone = entries.find((entry) => entry.what === "PodFinished" && entry.pod?.uid === old.uid);
      const started = action(entries, replacement.uid, "RunPodSandbox");
      assert.ok(gone !== undefined && gone.seq < started.seq, "never two at once");
      assert.ok(
        started.time - action(entries, old.uid, "StopContainer").time >= 2_000,
        "the old one had its time to end",
      );
      assert.ok(entries.some((entry) => entry.what === "PodWaits" && entry.pod?.uid === replacement.uid));
    });
  });

  test("a pod whose sandbox dies gets a new one, is initialized in it, and its host port leads there", async () => {
    await withPodwright(async (podwright) => {
      const script = "trap 'exit 0' TERM; echo here > /tmp/index.html; httpd -f -p 80 -h /tmp & wait $!";
      const options = { hostPort: 18_433, initScripts: ["true", "true"] };
      const path = await podwright.manifest("web.yaml", podManifest("web", script, options));
      await podwright.succeed("run", "--detach", path);
      const answer = async (): Promise<string> => (await fetch("http://127.0.0.1:18433")).text();
      assert.equal(await answer(), "here\n");
      const before = await podwright.pod("web");
      using cri = podwright.connect();
      const [sandbox] = (await cri.runtime.listPodSandbox({})).items;
      await podwright.kill(await podwright.firstProcessOfSandbox(sandbox?.id ?? ""));
      const pods = await podwright.waitFor("a new sandbox", ([pod]) => {
        return pod?.ready === true && pod.containers[0]?.id !== before.containers[0]?.id;
      });
      assert.deepEqual([pods[0]?.uid, pods[0]?.containers[0]?.restartCount], [before.uid, 1]);
      assert.notEqual(pods[0]?.ips[0], before.ips[0]);
      assert.equal(await answer(), "here\n");
      assert.match(await podwright.succeed("timeline", "web"), /create the sandbox, attempt 1/);
      const entries = await podwright.journal();
      const phases = entries.filter(({ what }) => what === "PodPhaseChanged").map(({ message }) => message);
      const [pending, running] = ["the pod is Pending", "the pod is Running"];
      assert.deepEqual(
        phases,
        [pending, running, pending, running],
        "not for a moment Running between init containers",
      );
      const starts = entries.filter(({ kind, what }) => kind === "action" && what === "StartContainer");
      const order = ["init-0", "init-1", "app"];
      assert.deepEqual(
        starts.map(({ container }) => container),
        [...order, ...order],
      );
    });
  });

  test("pods that are stopped while they start leave nothing behind", async () => {
    await withPodwright(async (podwright) => {
      const names = Array.from({ length: 12 }, (_, index) => `pod-${index}`);
      const texts = names.map((name, index) => [name, podManifest(name, politeSleep, { hostPort: 18_440 + index })]);
      await podwright.succeed(
        "run",
        "--detach",
        "--wait",
        "none",
        ...(await manifests(podwright, Object.fromEntries(texts))),
      );
      await podwright.succeed("stop", "--grace", "0", ...names);
      const actions = new Set((await podwright.journal()).map(({ kind, what }) => `${kind} ${what}`));
      assert.ok(actions.has("action RunPodSandbox") && actions.has("action RemovePodSandbox"));
      assert.deepEqual(await podwright.pods(), []);
    });
  });
});
