import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { podManifest, podObject, politeSleep } from "../support/manifests.ts";
import { patience } from "../support/patience.ts";
import { withPodwright } from "../support/podwright.ts";

const broken = {
  "brackets.yaml": {
    text: "apiVersion: v1\nkind: Pod\nmetadata: { name: brackets }\nspec:\n  containers: [{ name: app\n",
    says: /brackets\.yaml:6:1: invalid YAML: .*bracket/,
  },
  "unknown.yaml": {
    text: podManifest("unknown", politeSleep).replace('"command"', '"comand"'),
    says: /unknown\.yaml:\d+:\d+: spec\.containers\[0\]\.comand: unknown field "comand"; did you mean "command"\?/,
  },
  "types.yaml": {
    text: podManifest("types", politeSleep).replace('PeriodSeconds": 5', 'PeriodSeconds": "5"'),
    says: /types\.yaml:\d+:\d+: spec\.terminationGracePeriodSeconds: expected a number, got a string; leave out the quotes/,
  },
  "twice.yaml": {
    text: podManifest("fine", politeSleep),
    says: /twice\.yaml:\d+:\d+: metadata\.name: Duplicate value: the Pod default\/fine is also at \S+fine\.yaml:\d+/,
  },
  "huge.yaml": { text: "a".repeat(11 * 2 ** 20), says: /huge\.yaml: is longer than 10 MiB: too big for a manifest/ },
} as const;

// Two at a time: most of the time they wait.
describe("invalid input", { concurrency: 2 }, () => {
  test("of 100 manifests the 5 broken ones are reported with file, line and field, and the others run", async () => {
    await withPodwright(async (podwright) => {
      const directory = podwright.path("hundred");
      await mkdir(directory);
      const write = (name: string, text: string): Promise<void> => writeFile(join(directory, name), text);
      for (const [name, { text }] of Object.entries(broken)) await write(name, text);
      await write("fine.yaml", podManifest("fine", politeSleep));
      for (let index = 0; index < 7; index++) {
        await write(`pod-${index}.yaml`, podManifest(`pod-${index}`, politeSleep));
      }
      for (let index = 0; index < 87; index++) {
        const map = {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: `map-${index}` },
          data: { index: `${index}` },
        };
        await write(`map-${index}.yaml`, JSON.stringify(map));
      }
      const end = await podwright.run(["run", "--detach", directory]);
      assert.equal(end.exitCode, 2, end.stderr);
      const told = end.stderr.split("\n").filter((line) => line.startsWith("podwright: "));
      assert.equal(told.length, 5, end.stderr);
      for (const { says } of Object.values(broken)) assert.match(end.stderr, says);
      const pods = await podwright.pods();
      assert.deepEqual(
        pods.map(({ name, ready }) => [name, ready]),
        [["fine", true], ...Array.from({ length: 7 }, (_, index) => [`pod-${index}`, true])],
      );
    });
  });

  test("ps and why report a missing image, an impossible command and a missing ConfigMap; another pod runs meanwhile", async () => {
    await withPodwright(async (podwright) => {
      const never = JSON.stringify(podObject("never", "", { image: "podwright.local/absent:1" })).replace(
        "IfNotPresent",
        "Never",
      );
      const reference = { configMapRef: { name: "absent" } };
      const missing = JSON.parse(podManifest("unconfigured", "true")) as { spec: { containers: object[] } };
      missing.spec.containers = missing.spec.containers.map((container) => ({ ...container, envFrom: [reference] }));
      const manifests = {
        never,
        unreachable: podManifest("unreachable", "", { image: "127.0.0.1:9/absent:1" }),
        impossible: podManifest("impossible", "", { command: ["/no/such/program"] }),
        unconfigured: JSON.stringify(missing),
        good: podManifest("good", politeSleep),
      };
      const paths = await Promise.all(
        Object.entries(manifests).map(([name, text]) => podwright.manifest(`${name}.yaml`, text)),
      );
      const end = await podwright.run(["run", "--detach", "--timeout", `${12 * patience}s`, ...paths]);
      assert.equal(end.exitCode, 1);
      assert.match(
        end.stderr,
        /podwright: never is not ready after 12\.0 s: container app is waiting: ErrImageNeverPull: Container image "podwright\.local\/absent:1" is not present with pull policy of Never/,
      );

      const pods = await podwright.pods();
      const reason = (name: string) => pods.find((pod) => pod.name === name)?.containers[0];
      assert.equal(reason("good")?.ready, true);
      assert.equal(reason("never")?.reason, "ErrImageNeverPull");
      assert.match(reason("unreachable")?.reason ?? "", /^(?:ErrImagePull|ImagePullBackOff)$/);
      assert.equal(reason("unconfigured")?.reason, "CreateContainerConfigError");
      assert.match(reason("unconfigured")?.message ?? "", /configmap "absent" not found/);
      // Its first retry is due about now.
      const impossible =
        /^RunContainerError .*\/no\/such\/program|^CrashLoopBackOff back-off 10s restarting failed container=app/u;
      assert.match(`${reason("impossible")?.reason} ${reason("impossible")?.message}`, impossible);
      assert.match(await podwright.succeed("why", "unreachable"), /127\.0\.0\.1:9\/absent:1[^]*connection refused/);
      assert.match(await podwright.succeed("why", "impossible"), /\/no\/such\/program/);
      assert.match(await podwright.succeed("ps"), /never +0\/1 +ErrImageNeverPull/);
    });
  });

  test("of two pods that need the same host port the second is rejected, and the first keeps running", async () => {
    await withPodwright(async (podwright) => {
      const [first, second] = await Promise.all(
        ["first", "second"].map((name) =>
          podwright.manifest(`${name}.yaml`, podManifest(name, politeSleep, { hostPort: 18_431 })),
        ),
      );
      assert.ok(first !== undefined && second !== undefined);
      await podwright.succeed("run", "--detach", first);
      const end = await podwright.run(["run", "--detach", second]);
      assert.equal(end.exitCode, 1);
      assert.match(
        end.stderr,
        /second failed: NodePorts: .*host port TCP 0\.0\.0\.0:18431 is taken by pod default\/first/,
      );
      const pods = await podwright.pods();
      assert.deepEqual(
        pods.map(({ name, phase, reason, ready }) => ({ name, phase, reason, ready })),
        [
          { name: "first", phase: "Running", reason: "", ready: true },
          { name: "second", phase: "Failed", reason: "NodePorts", ready: false },
        ],
      );
      assert.match(await podwright.succeed("why", "second"), /host port/);
    });
  });

  test("an unreadable manifest file and one without a pod are reported, and nothing starts", async () => {
    await withPodwright(async (podwright) => {
      const map = await podwright.manifest("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: alone }\n");
      const alone = await podwright.run(["run", "--detach", map]);
      assert.deepEqual([alone.exitCode, /no pod in \S+map\.yaml/.test(alone.stderr)], [2, true], alone.stderr);
      const missing = await podwright.run(["run", "--detach", podwright.path("nowhere.yaml")]);
      assert.deepEqual(
        [missing.exitCode, missing.stderr.includes("nowhere.yaml: does not exist")],
        [2, true],
        missing.stderr,
      );
      assert.equal(await podwright.enginePid(), undefined);
    });
  });
});
