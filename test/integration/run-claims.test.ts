import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ClaimView } from "../../src/server/local-api.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";

const claim = (name: string, spec = ""): string => `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name} }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Mi } }${spec} }
`;

/** A pod that runs a shell script, with volumes by name. */
function pod(name: string, script: string, volumes: Readonly<Record<string, string>>, mounts = ""): string {
  const listed = Object.entries(volumes).map(([volume, source]) => `    - { name: ${volume}, ${source} }`);
  const mounted = Object.keys(volumes).map((volume) => `        - { name: ${volume}, mountPath: /${volume} }`);
  return `
apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec:
  terminationGracePeriodSeconds: 0
  securityContext: { runAsUser: 1000, fsGroup: 4711 }
  containers:
    - name: app
      image: podwright.local/demo:1
      imagePullPolicy: Never
      command: [sh, -c, "${script}; exec sleep 36000"]
      volumeMounts:
${mounted.join("\n")}${mounts}
  volumes:
${listed.join("\n")}
`;
}

const claimed = (name: string): string => `persistentVolumeClaim: { claimName: ${name} }`;
const scratch =
  "ephemeral: { volumeClaimTemplate: { spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Mi } } } } }";

async function claims(podwright: Podwright): Promise<readonly ClaimView[]> {
  const { claims: views } = JSON.parse(await podwright.succeed("volumes", "--json")) as {
    claims: readonly ClaimView[];
  };
  return views;
}

/** What `podwright why` says, on one line. */
async function why(podwright: Podwright, name: string): Promise<string> {
  return (await podwright.succeed("why", name)).replaceAll(/\s+/gu, " ");
}

test("a pod's claim data outlives it, and its ephemeral volume's data is removed with it", async () => {
  await withPodwright(async (podwright) => {
    const script =
      "echo x >>/data/runs; echo x >/scratch/note; mkdir -p /data/sub; touch /fixed/x || echo ro >/data/fixed";
    const mounts = [
      "\n        - { name: data, mountPath: /fixed, readOnly: true }",
      "\n        - { name: data, mountPath: /part, subPath: sub }",
    ].join("");
    const manifest = await podwright.manifest(
      "web.yaml",
      `${claim("data")}---${pod("web", script, { data: claimed("data"), scratch }, mounts)}`,
    );
    const data = join(podwright.layout.volumes, "default/data");
    const runs = async (count: number): Promise<void> =>
      await until(`run ${count}`, async () => {
        return existsSync(`${data}/runs`) && readFileSync(`${data}/runs`, "utf8") === "x\n".repeat(count);
      });
    assert.match(
      await podwright.succeed("plan", manifest),
      /PersistentVolumeClaim default\/data +would be added, in \//u,
    );
    await podwright.succeed("run", "--detach", manifest);
    await runs(1);
    await until("what is read-only", async () => existsSync(`${data}/fixed`));
    await podwright.succeed("exec", "web", "--", "sh", "-c", "echo part >/part/file");
    assert.equal(readFileSync(`${data}/sub/file`, "utf8"), "part\n");
    assert.deepEqual(
      (await claims(podwright)).map(({ name, usedBy }) => [name, usedBy.length]),
      [
        ["data", 1],
        ["web-scratch", 1],
      ],
    );

    // The engine is gone, its pods run on: what they use is not removed.
    await podwright.kill(await podwright.enginePid());
    const refused = await podwright.run(["volumes", "rm", "--force", "data"]);
    assert.deepEqual([refused.exitCode, /is used by web/u.test(refused.stderr)], [1, true], refused.stderr);

    await podwright.succeed("run", "--detach");
    await podwright.succeed("stop", "web");
    const own = join(podwright.layout.volumes, "default/web-scratch");
    await until("the ephemeral volume to go", async () => !existsSync(own));
    assert.deepEqual(
      (await claims(podwright)).map(({ name, usedBy }) => [name, usedBy.length]),
      [["data", 0]],
    );

    await podwright.succeed("run", "--detach", manifest);
    await runs(2);
    await podwright.succeed("stop", "web");
    const archive = podwright.path("data.tar.gz");
    await podwright.succeed("volumes", "copy-out", "data", archive);
    assert.ok(existsSync(archive));
    await until("the engine to end", async () => (await podwright.enginePid()) === undefined, 30_000);
    const damaged = join(podwright.layout.claims, "persistentvolumeclaim_default_other_0.json");
    writeFileSync(damaged, "");
    const listed = await podwright.run(["volumes"]);
    assert.match(listed.stdout, /default +data/u);
    assert.match(listed.stderr, /other_0\.json: it is empty; give its document to '/u);
    await podwright.succeed("volumes", "rm", "--force", "data");
    assert.equal(existsSync(data), false);
    assert.deepEqual(await claims(podwright), []);
    rmSync(damaged);
  });
});

/** Each in its turn, on one engine that a third pod keeps. */
const waits: Readonly<Record<string, (podwright: Podwright) => Promise<void>>> = {
  "a pod waits for a claim that nobody gave, and starts with it": async (podwright) => {
    const manifest = await podwright.manifest("web.yaml", pod("web", "echo x >/data/here", { data: claimed("data") }));
    await podwright.succeed("run", "--detach", "--wait", "none", manifest);
    const missing = /persistentvolumeclaims "data" not found; add the PersistentVolumeClaim to the manifests/u;
    await until("the reason", async () => missing.test(await why(podwright, "web")));
    assert.match(
      await why(podwright, "web"),
      /^Pending: waits for a volume: claim default\/data does not exist; add the PersistentVolumeClaim to the manifests/u,
    );
    assert.match((await podwright.run(["doctor"])).stdout, /claim default\/data does not exist/u);

    const disk = podwright.path("disk");
    const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: { name: disk }
spec:
  accessModes: [ReadWriteOnce, ReadWriteMany]
  capacity: { storage: 1Gi }
  hostPath: { path: ${disk}, type: DirectoryOrCreate }
`;
    const given = await podwright.manifest("claim.yaml", `${claim("data", ', storageClassName: ""')}---${volume}`);
    await podwright.succeed("run", given);
    await podwright.waitFor("the pod is ready", (pods) => pods.some(({ name, ready }) => name === "web" && ready));
    assert.deepEqual(
      (await claims(podwright)).map(({ path, isOwn }) => [path, isOwn]),
      [[disk, false]],
    );
    await podwright.succeed("stop", "web");
    assert.match(await podwright.succeed("volumes", "rm", "--force", "data"), /its data stays in/u);
    assert.ok(existsSync(disk));
  },

  "nothing is applied beside a volume with an error": async (podwright) => {
    const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: { name: disk }
spec: { accessModes: [ReadWriteOnce], capacity: { storage: 1Gi }, hostPth: { path: /srv/data } }
`;
    const user = pod("web", "true", { data: claimed("data") });
    const manifest = await podwright.manifest("web.yaml", `${claim("data")}---${volume}---${user}`);
    const refused = await podwright.run(["run", "--detach", manifest]);
    assert.equal(refused.exitCode, 2, refused.stderr);
    assert.match(refused.stderr, /web\.yaml:\d+:\d+: spec\.hostPth: .*\n(?:.*\n)*.*nothing is applied/u);
    assert.deepEqual(await claims(podwright), []);
  },

  "one pod at a time uses a claim that is ReadWriteOncePod": async (podwright) => {
    const once = claim("data").replace("ReadWriteOnce", "ReadWriteOncePod");
    const user = (name: string): string => pod(name, "true", { data: claimed("data") });
    const manifest = await podwright.manifest("pods.yaml", `${once}---${user("first")}---${user("second")}`);
    await podwright.succeed("run", "--detach", "--wait", "none", manifest);
    const held = /ReadWriteOncePod access mode and is already in use by another pod/u;
    const names = ["first", "second"];
    const waiting = async (): Promise<string | undefined> => {
      const told = await Promise.all(names.map((name) => why(podwright, name)));
      return names.find((_name, index) => held.test(told[index] ?? ""));
    };
    await until("one of them to wait", async () => (await waiting()) !== undefined);
    const late = await waiting();
    await podwright.waitFor("the other", (pods) =>
      pods.some(({ name, ready }) => name !== late && names.includes(name) && ready),
    );
    await podwright.succeed("stop", late === "first" ? "second" : "first");
    await podwright.waitFor("the later pod", (pods) => pods.some(({ name, ready }) => name === late && ready));
    await podwright.succeed("stop", late ?? "");
  },
};

test("pods that wait for claims", async (context) => {
  await withPodwright(async (podwright) => {
    const keep = await podwright.manifest("keep.yaml", pod("keep", "true", {}));
    await podwright.succeed("run", "--detach", keep);
    for (const [name, shown] of Object.entries(waits)) await context.test(name, () => shown(podwright));
    await podwright.succeed("stop", "keep");
  });
});

test("a stop that ended with its engine is completed by a run without an operand, which waits for no pod", async () => {
  await withPodwright(async (podwright) => {
    // The first process of a container has no default for SIGTERM: it runs until SIGKILL.
    const slow = pod("slow", "true", { data: claimed("data") }).replace("PeriodSeconds: 0", "PeriodSeconds: 15");
    const manifest = await podwright.manifest("slow.yaml", `${claim("data")}---${slow}`);
    await podwright.succeed("run", "--detach", manifest);
    const stop = podwright.start(["stop", "slow"]);
    await stop.prints(/stopping slow/u);
    // It would start the engine again.
    stop.child.kill("SIGKILL");
    await podwright.kill(await podwright.enginePid());
    const refused = await podwright.run(["volumes", "rm", "--force", "data"]);
    assert.match(refused.stderr, /used by slow, which was being stopped when the engine ended/u);
    assert.equal(await podwright.succeed("run", "--detach"), "completing the stop of slow\n");
    await until("the engine to end", async () => (await podwright.enginePid()) === undefined, 60_000);
    await podwright.succeed("volumes", "rm", "--force", "data");
    assert.deepEqual(await claims(podwright), []);
  });
});
