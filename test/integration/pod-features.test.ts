import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test } from "node:test";
import type { JournalEntry } from "../../src/journal/entry.ts";
import { politeSleep } from "../support/manifests.ts";
import { patience } from "../support/patience.ts";
import { type Podwright, sleep, withPodwright } from "../support/podwright.ts";

const image = { image: "podwright.local/demo:1", imagePullPolicy: "IfNotPresent" };
const shell = (name: string, script: string, more: object = {}): object => {
  return { ...image, name, command: ["/bin/sh", "-c", script], ...more };
};
const pod = (name: string, spec: object): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 2, ...spec },
  });

async function apply(podwright: Podwright, name: string, spec: object, ...options: readonly string[]): Promise<void> {
  const path = await podwright.manifest(`${name}.yaml`, pod(name, spec));
  await podwright.succeed("run", "--detach", ...options, path);
}

/** The journal's entries of one kind of one pod. */
async function entriesOf(podwright: Podwright, name: string, what: string): Promise<JournalEntry[]> {
  return (await podwright.journal()).filter((entry) => entry.pod?.name === name && entry.what === what);
}

const actions = (entries: readonly JournalEntry[]): JournalEntry[] => entries.filter(({ kind }) => kind === "action");

describe("features of pods on a real runtime", { concurrency: 2 }, () => {
  test("an ephemeral container joins the running pod, sees its target's processes and restarts nothing", async () => {
    await withPodwright(async (podwright) => {
      const spec = { containers: [shell("app", `: needle; ${politeSleep}`)] };
      const debug = shell("debug", "tr '\\0' ' ' < /proc/1/cmdline; exit 3", { targetContainerName: "app" });
      await apply(podwright, "web", spec);
      const before = await podwright.pod("web");
      await apply(podwright, "web", { ...spec, ephemeralContainers: [debug] });
      const ended = "the ephemeral container ended";
      await podwright.waitFor(ended, (pods) => pods[0]?.ephemeralContainers[0]?.state === "terminated");
      const after = await podwright.pod("web");
      assert.equal(after.uid, before.uid);
      assert.deepEqual(after.containers, before.containers);
      assert.equal(after.ephemeralContainers[0]?.exitCode, 3);
      assert.match(await podwright.succeed("logs", "web", "debug"), /needle/u);
      const starts = actions(await entriesOf(podwright, "web", "StartContainer"));
      assert.deepEqual(
        starts.map(({ container }) => container),
        ["app", "debug"],
      );
      const changed = await podwright.manifest(
        "changed.yaml",
        pod("web", { ...spec, ephemeralContainers: [{ ...debug, stdin: true }] }),
      );
      const refused = await podwright.run(["run", "--detach", changed]);
      assert.equal(refused.exitCode, 2);
      assert.match(refused.stderr, /existing ephemeral container "debug" may not be changed/u);
    });
  });

  test("debug runs a command beside a pod's containers, and reports how it ended", async () => {
    await withPodwright(async (podwright) => {
      // The content of its volumes is updated in the step that adopts the container.
      const volumes = Array.from({ length: 20 }, (_, index) => {
        return { name: `v${index}`, downwardAPI: { items: [{ path: "n", fieldRef: { fieldPath: "metadata.name" } }] } };
      });
      await apply(podwright, "web", { containers: [shell("app", `: needle; ${politeSleep}`)], volumes });
      const before = await podwright.pod("web");
      const look = ["debug", "web", "--target", "app", "--", "sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline; echo"];
      const { exitCode, stdout, stderr } = await podwright.run(look);
      assert.equal(exitCode, 0, stderr);
      assert.match(stdout, /needle/u);
      assert.match(stderr, /container debugger-[0-9a-f]{6} of pod web/u);
      const failed = await podwright.run(["debug", "web", "--", "sh", "-c", "exit 3"]);
      assert.equal(failed.exitCode, 1);
      assert.match(failed.stderr, /ended with code 3/u);
      const missing = await podwright.run(["debug", "web", "--image", "podwright.local/none:1"]);
      assert.equal(missing.exitCode, 1);
      assert.match(missing.stderr, /does not start: Err?Image/u);
      const after = await podwright.pod("web");
      assert.deepEqual([after.uid, after.containers], [before.uid, before.containers]);
      assert.equal(after.ephemeralContainers.length, 3);
      const nothing = await podwright.run(["debug", "web"]);
      assert.deepEqual([nothing.exitCode, nothing.stdout], [2, ""]);
      assert.equal((await podwright.run(["debug", "web", "--target", "nope", "--", "ps"])).exitCode, 2);
    });
  });

  test("a rule restarts all containers of a pod in its sandbox, the one that triggered it last", async () => {
    await withPodwright(async (podwright) => {
      const rule = { action: "RestartAllContainers", exitCodes: { operator: "In", values: [88] } };
      const volumeMounts = [{ name: "v", mountPath: "/v" }];
      const source = `echo "run $(cat /v/runs | wc -l)"; [ $(cat /v/runs | wc -l) = 2 ] || { sleep 1; exit 88; }; ${politeSleep}`;
      const never = { restartPolicy: "Never", restartPolicyRules: [rule] };
      const preStop = { exec: { command: ["/bin/sh", "-c", "echo hook >> /v/hooks"] } };
      await apply(
        podwright,
        "again",
        {
          restartPolicy: "Never",
          volumes: [{ name: "v", emptyDir: {} }],
          // Long enough to be seen running.
          initContainers: [shell("init", "echo >> /v/runs; sleep 1", { volumeMounts })],
          containers: [
            shell("source", source, { ...never, volumeMounts }),
            shell("other", politeSleep, { volumeMounts, lifecycle: { preStop } }),
          ],
        },
        "--wait",
        "none",
      );
      const pods = await podwright.waitFor("all run again", ([again]) => {
        return again?.containers.every(({ state, restartCount }) => state === "running" && restartCount === 1) === true;
      });
      assert.equal(pods[0]?.phase, "Running");
      assert.equal(pods[0].initContainers[0]?.restartCount, 1);
      assert.equal(await podwright.succeed("logs", "again", "source"), "run 2\n");
      assert.equal((await podwright.succeed("logs", "again", "source", "--previous")).trim(), "run 1");
      assert.equal(actions(await entriesOf(podwright, "again", "RunPodSandbox")).length, 1, "in its sandbox");
      assert.equal((await entriesOf(podwright, "again", "PreStopHook")).length, 0, "without hooks");
      const removed = actions(await entriesOf(podwright, "again", "RemoveContainer")).slice(0, 3);
      assert.deepEqual([removed.at(-1)?.container, removed[0]?.cause?.code], ["source", "RestartAllContainers"]);
      const phases = await entriesOf(podwright, "again", "PodPhaseChanged");
      assert.deepEqual(
        phases.map(({ data }) => data?.["to"]),
        ["Pending", "Running", "Pending", "Running"],
        "its init container runs again",
      );
      const states = (await entriesOf(podwright, "again", "ContainerStateChanged")).map(({ data }) => data?.["reason"]);
      assert.ok(states.includes("RestartingAllContainers"));
      assert.equal((await entriesOf(podwright, "again", "StatusRefused")).length, 0);
    });
  });

  test("a variable's value comes from a file that an init container wrote", async () => {
    await withPodwright(async (podwright) => {
      const fileKeyRef = (key: string, optional = false): object => {
        return { valueFrom: { fileKeyRef: { volumeName: "config", path: "env", key, optional } } };
      };
      const script = `printf '%s|%s|%s\\n' "$TOKEN" "$TEXT" "\${NONE-unset}"; ${politeSleep}`;
      const write = String.raw`printf "# made here\nTOKEN='a b'\nTEXT='two\nlines'\n" > /config/env`;
      const volumeMounts = [{ name: "config", mountPath: "/config" }];
      await apply(podwright, "env", {
        volumes: [{ name: "config", emptyDir: {} }],
        initContainers: [shell("write", write, { volumeMounts })],
        containers: [
          shell("app", script, {
            env: [
              { name: "TOKEN", ...fileKeyRef("TOKEN") },
              { name: "TEXT", ...fileKeyRef("TEXT") },
              { name: "NONE", ...fileKeyRef("NONE", true) },
            ],
          }),
        ],
      });
      assert.equal(await podwright.succeed("logs", "env"), "a b|two\nlines|unset\n");
    });
  });

  test("a pod with unsupported security settings is rejected by name, one with fewer gets them", async () => {
    await withPodwright(async (podwright) => {
      const containers = [
        shell("app", `id -u; id -G; cat /proc/sys/net/ipv4/ip_unprivileged_port_start; ${politeSleep}`),
      ];
      const securityContext = {
        runAsUser: 1234,
        runAsGroup: 5678,
        supplementalGroups: [4321],
        supplementalGroupsPolicy: "Strict",
        sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "81" }],
      };
      await apply(podwright, "strict", { containers, securityContext });
      assert.equal(await podwright.succeed("logs", "strict"), "1234\n5678 4321\n81\n");

      const refused = async (name: string, context: object): Promise<string> => {
        const path = await podwright.manifest(`${name}.yaml`, pod(name, { containers, securityContext: context }));
        const { exitCode, stderr } = await podwright.run(["run", "--detach", path]);
        assert.equal(exitCode, 1, stderr);
        const [view] = (await podwright.pods()).filter((each) => each.name === name);
        return `${view?.phase} ${view?.reason}: ${view?.message}`;
      };
      const sysctls = [{ name: "net.core.somaxconn", value: "1" }];
      assert.match(
        await refused("unsafe", { sysctls }),
        /^Failed SysctlForbidden: Pod was rejected: forbidden sysctl: "net\.core\.somaxconn" not allowlisted/u,
      );
      if (existsSync("/sys/module/apparmor/parameters/enabled")) return;
      assert.match(
        await refused("confined", { appArmorProfile: { type: "RuntimeDefault" } }),
        /^Failed AppArmor: Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host/u,
      );
    });
  });

  test("a readiness gate that is never set keeps a pod unready, but running", async () => {
    await withPodwright(async (podwright) => {
      const readinessGates = [{ conditionType: "example.com/traffic" }];
      await apply(podwright, "gated", { containers: [shell("app", politeSleep)], readinessGates }, "--wait", "running");
      const gated = await podwright.pod("gated");
      assert.deepEqual([gated.phase, gated.ready, gated.containers[0]?.ready], ["Running", false, true]);
    });
  });

  test("crash-loop back-off continues after podwright is killed", async () => {
    await withPodwright(async (podwright) => {
      await apply(podwright, "crash", { containers: [shell("app", "exit 1")] }, "--wait", "none");
      await podwright.waitFor("a back-off", ([crash]) => crash?.containers[0]?.reason === "CrashLoopBackOff");
      const { createdAt } = await podwright.pod("crash");
      const ended = (await podwright.container("crash", "app")).finishedAt ?? 0;
      await podwright.kill(await podwright.enginePid());
      await podwright.succeed("run", "--detach", "--wait", "none");
      await podwright.waitFor("the next restart", ([crash]) => crash?.containers[0]?.restartCount === 2);
      assert.equal((await podwright.pod("crash")).createdAt, createdAt);
      await sleep(100);
      const created = actions(await entriesOf(podwright, "crash", "CreateContainer")).at(-1);
      const waitedMs = (created?.time ?? 0) - ended;
      assert.ok(waitedMs > 9_000 && waitedMs < 40_000 * patience, `restarted after ${waitedMs} ms`);
    });
  });
});
