import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import type { JournalEntry } from "../../src/journal/entry.ts";
import { politeSleep } from "../support/manifests.ts";
import { patience } from "../support/patience.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";

interface TestContainer {
  readonly name: string;
  readonly script: string;
  readonly lifecycle?: object;
  readonly livenessProbe?: object;
}

function shellContainer({ script, ...container }: TestContainer): object {
  return {
    ...container,
    image: "podwright.local/demo:1",
    imagePullPolicy: "IfNotPresent",
    command: ["/bin/sh", "-c", script],
  };
}

/** The manifest of a pod of shells. */
function pod(name: string, spec: object, containers: readonly TestContainer[]): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { ...spec, containers: containers.map(shellContainer) },
  });
}

const shell = (script: string): object => ({ exec: { command: ["/bin/sh", "-c", script] } });
const deaf = "trap '' TERM; while true; do sleep 1; done";

async function start(podwright: Podwright, name: string, text: string): Promise<void> {
  await podwright.succeed("run", "--detach", await podwright.manifest(`${name}.yaml`, text));
}

/** The journal's entries of one kind of one pod, in order. */
async function entriesOf(podwright: Podwright, podName: string, what: string): Promise<JournalEntry[]> {
  const entries = await podwright.journal();
  return entries.filter((entry) => entry.pod?.name === podName && entry.what === what && entry.kind !== "outcome");
}

/** ms between the beginnings of two acts. */
async function between(
  podwright: Podwright,
  podName: string,
  from: string,
  to: string,
  meant: (entry: JournalEntry) => boolean = () => true,
): Promise<number> {
  const [first] = await entriesOf(podwright, podName, from);
  const second = (await entriesOf(podwright, podName, to)).find(meant);
  assert.ok(first && second, `${podName} has no ${from} or no ${to}`);
  return second.time - first.time;
}

function assertAbout(actualMs: number, expectedMs: number): void {
  assert.ok(
    actualMs >= expectedMs - 250 && actualMs < expectedMs + 2500 * patience,
    `${actualMs} ms, not about ${expectedMs} ms`,
  );
}

test("a preStop hook's time is part of the grace period, and a container that ignores SIGTERM is killed at its end", async () => {
  await withPodwright(async (podwright) => {
    const preStop = shell("echo closing > /proc/1/fd/1; sleep 3; echo closed");
    const app = { name: "app", script: deaf, lifecycle: { preStop } };
    await start(podwright, "half", pod("half", { terminationGracePeriodSeconds: 6 }, [app]));
    const nap = { name: "app", script: politeSleep, lifecycle: { preStop: { sleep: { seconds: 2 } } } };
    await start(podwright, "nap", pod("nap", { terminationGracePeriodSeconds: 20 }, [nap]));
    const logs = podwright.start(["logs", "-f", "half"]);
    await podwright.succeed("stop", "half", "nap");
    assertAbout(await between(podwright, "half", "PodTerminating", "ContainerDied"), 6000);
    assertAbout(await between(podwright, "half", "PreStopHook", "StopContainer"), 3000);
    assertAbout(await between(podwright, "nap", "PreStopHook", "StopContainer"), 2000);
    const [stop] = await entriesOf(podwright, "half", "StopContainer");
    assert.equal(stop?.data?.["graceSeconds"], 3);
    assert.match((await logs.ended).stdout, /closing/);
    const outcome = (await podwright.journal()).find(
      (entry) => entry.kind === "outcome" && entry.what === "PreStopHook" && entry.pod?.name === "half",
    );
    assert.deepEqual(outcome?.data, { output: "closed" });
  });
});

/** Its sidecar ends while the app, which no probe finds well, is in its preStop hook. */
const lastOne = pod(
  "last-one",
  {
    restartPolicy: "Never",
    terminationGracePeriodSeconds: 20,
    initContainers: [{ ...shellContainer({ name: "side", script: "sleep 2" }), restartPolicy: "Always" }],
  },
  [
    {
      name: "app",
      script: politeSleep,
      livenessProbe: { exec: { command: ["false"] }, periodSeconds: 1, failureThreshold: 1 },
      lifecycle: { preStop: shell("sleep 4") },
    },
  ],
);

test("a stop is reported before its hook, and a pod about to stop restarts no sidecar", async () => {
  await withPodwright(async (podwright) => {
    await start(podwright, "last-one", lastOne);
    const entries = (what: string): Promise<JournalEntry[]> => entriesOf(podwright, "last-one", what);
    await until("the hook to begin", async () => (await entries("PreStopHook")).length > 0);
    const killed = (await entries("Killing")).map(({ container = "" }) => container);
    assert.deepEqual(killed.toSorted(), ["app", "side"]);
    await until("the end", async () => (await entries("PodTerminated")).length > 0);
    const starts = (await entries("StartContainer")).map(({ container = "" }) => container);
    assert.deepEqual(starts, ["side", "app"]);
    assert.equal((await entries("Killing")).length, 2);
    assert.ok((await between(podwright, "last-one", "Killing", "StopContainer")) > 3500);
  });
});

test("a shorter grace period applies to a pod whose preStop hook runs, and the hook does not restart", async () => {
  await withPodwright(async (podwright) => {
    const preStop = shell("echo hook > /proc/1/fd/1; sleep 60");
    const app = { name: "app", script: politeSleep, lifecycle: { preStop } };
    await start(podwright, "slow", pod("slow", { terminationGracePeriodSeconds: 90 }, [app]));
    const logs = podwright.start(["logs", "-f", "slow"]);
    const stop = podwright.start(["stop", "slow"]);
    await until("the hook to begin", async () => (await entriesOf(podwright, "slow", "PreStopHook")).length > 0);
    assert.match(await podwright.succeed("why", "slow"), /run the preStop hook of container app.* → still running/);
    await podwright.succeed("stop", "--grace", "1", "slow");
    await stop.ended;
    assertAbout(await between(podwright, "slow", "PreStopHookOverdue", "ContainerDied"), 0);
    assert.equal((await logs.ended).stdout, "hook\n");
    assert.equal((await entriesOf(podwright, "slow", "PreStopHook")).length, 1);
    assert.equal((await entriesOf(podwright, "slow", "PreStopHookOverdue")).length, 1);
  });
});

test("postStart ends before the next container starts; a failed one kills its container, which is reported and restarted", async () => {
  await withPodwright(async (podwright) => {
    const mesh = pod("mesh", {}, [
      { name: "proxy", script: politeSleep, lifecycle: { postStart: shell("sleep 2") } },
      { name: "app", script: politeSleep },
    ]);
    await start(podwright, "mesh", mesh);
    // Its hook makes a container ready, not its process.
    assertAbout(
      await between(
        podwright,
        "mesh",
        "PostStartHook",
        "ContainerStateChanged",
        (entry) => entry.data?.["ready"] === true,
      ),
      2000,
    );
    const [proxy, app] = await entriesOf(podwright, "mesh", "StartContainer");
    assert.deepEqual([proxy?.container, app?.container], ["proxy", "app"]);
    assertAbout((app?.time ?? 0) - (proxy?.time ?? 0), 2000);

    const lifecycle = { postStart: shell("echo no way; exit 4"), preStop: { sleep: { seconds: 0 } } };
    const broken = pod("broken", { terminationGracePeriodSeconds: 5 }, [
      { name: "app", script: politeSleep, lifecycle },
    ]);
    await podwright.run(["run", "--detach", "--wait", "none", await podwright.manifest("broken.yaml", broken)]);
    await podwright.waitFor("the broken pod to be restarted and to fail again", (all) =>
      all.some(({ name, containers }) => name === "broken" && containers[0]?.reason === "CrashLoopBackOff"),
    );
    const states = (await entriesOf(podwright, "broken", "ContainerStateChanged")).map(({ message }) => message);
    assert.ok(
      states.includes(
        "container app is waiting: PostStartHookError: the postStart hook of container app failed: exited with code 4: no way",
      ),
      states.join("\n"),
    );
    assert.ok(!states.some((message) => message.includes("running")), states.join("\n"));
    const whats = (await podwright.journal())
      .filter((entry) => entry.pod?.name === "broken" && entry.kind !== "outcome")
      .map(({ what }) => what);
    const order = ["StartContainer", "PostStartHook", "FailedPostStartHook", "PreStopHook", "StopContainer"];
    assert.deepEqual(whats.filter((what) => order.includes(what)).slice(0, order.length), order);
    const [stop] = await entriesOf(podwright, "broken", "StopContainer");
    assert.equal(stop?.cause?.code, "FailedPostStartHook");
  });
});

test("an HTTP hook sends its request, HTTPS falls back to HTTP, and a failing one stops nothing", async () => {
  const requests: { readonly url: string | undefined; readonly headers: IncomingHttpHeaders }[] = [];
  const server = createServer(({ url, headers }, response) => {
    requests.push({ url, headers });
    response.writeHead(500).end("no");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  try {
    await withPodwright(async (podwright) => {
      const httpHeaders = [{ name: "Authorization", value: "Bearer x" }];
      const get = { host: "127.0.0.1", port: address.port, httpHeaders };
      const web = pod("web", { terminationGracePeriodSeconds: 5 }, [
        {
          name: "app",
          script: "httpd -f -p 8080",
          lifecycle: {
            postStart: { httpGet: { ...get, path: "/up" } },
            preStop: { httpGet: { ...get, path: "/down", scheme: "HTTPS" } },
          },
        },
        { name: "none", script: politeSleep, lifecycle: { preStop: { httpGet: { port: 9, path: "/" } } } },
      ]);
      await start(podwright, "web", web);
      await podwright.succeed("stop", "web");
      assert.deepEqual(
        requests.map(({ url, headers }) => [url, headers["user-agent"], headers.authorization]),
        [
          ["/up", "kube-lifecycle/1.36", "Bearer x"],
          ["/down", "kube-lifecycle/1.36", undefined],
        ],
      );
      assert.equal((await entriesOf(podwright, "web", "LifecycleHTTPFallback")).length, 1);
      const [failed] = await entriesOf(podwright, "web", "FailedPreStopHook");
      assert.equal(failed?.message, "the preStop hook of container none failed: connection refused");
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("a stop signal in the spec reaches the container, or a runtime without support is named at once", async () => {
  await withPodwright(async (podwright) => {
    const script = "trap 'echo term' TERM; trap 'echo user; exit 0' USR1; while true; do sleep 1 & wait $!; done";
    const app = { name: "app", script, lifecycle: { stopSignal: "SIGUSR1" } };
    const manifest = pod("signal", { os: { name: "linux" }, terminationGracePeriodSeconds: 10 }, [app]);
    await podwright.run(["run", "--detach", "--wait", "none", await podwright.manifest("signal.yaml", manifest)]);
    const [refused] = await podwright.waitFor("a start or a refusal", ([one]) => {
      return one?.ready === true || one?.containers[0]?.reason === "CreateContainerConfigError";
    });
    const view = refused?.containers[0];
    if (view?.reason === "CreateContainerConfigError") {
      assert.match(view.message, /runtime does not support lifecycle\.stopSignal .*SIGUSR1$/);
      assert.deepEqual(await entriesOf(podwright, "signal", "StartContainer"), []);
      return;
    }
    const logs = podwright.start(["logs", "-f", "signal"]);
    await podwright.succeed("stop", "signal");
    assert.equal((await logs.ended).stdout, "user\n");
  });
});

test("a pod fails at its deadline, which continues over a restart of podwright", async () => {
  await withPodwright(async (podwright) => {
    const spec = { activeDeadlineSeconds: 8, terminationGracePeriodSeconds: 2 };
    await start(podwright, "late", pod("late", spec, [{ name: "app", script: politeSleep }]));
    const [sandbox] = await entriesOf(podwright, "late", "RunPodSandbox");
    await podwright.kill(await podwright.enginePid());
    await podwright.run(["run", "--detach", "--wait", "none"]);
    const pods = await podwright.waitFor("the deadline", (all) => all.some(({ state }) => state === "terminated"));
    const [late] = pods;
    assert.equal(late?.phase, "Failed");
    assert.equal(late.reason, "DeadlineExceeded");
    assert.equal(late.message, "Pod was active on the node longer than the specified deadline");
    const [ended] = await entriesOf(podwright, "late", "PodTerminating");
    const taken = (await podwright.journal()).findLast(({ what }) => what === "PodsFound");
    const begunMs = sandbox?.time ?? 0;
    // A new life that sees the pod only after its deadline ends it at once.
    assertAbout((ended?.time ?? 0) - begunMs, Math.max(8000, (taken?.time ?? 0) - begunMs));
  });
});
