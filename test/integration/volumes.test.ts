import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { politeSleep } from "../support/manifests.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";

const image = { image: "podwright.local/demo:1", imagePullPolicy: "IfNotPresent" };

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly [field: string]: unknown;
}

function shell(name: string, script: string, volumeMounts: readonly object[], more: object = {}): object {
  return { name, ...image, command: ["/bin/sh", "-c", script], volumeMounts, ...more };
}

function pod(name: string, spec: object): Manifest {
  const metadata = { name, labels: { app: "volumes" } };
  return { kind: "Pod", metadata, spec: { terminationGracePeriodSeconds: 2, ...spec } };
}

function configMap(name: string, data: Readonly<Record<string, string>>): Manifest {
  return { kind: "ConfigMap", metadata: { name }, data };
}

async function write(podwright: Podwright, ...manifests: Manifest[]): Promise<string> {
  const documents = manifests.map((manifest) => JSON.stringify({ apiVersion: "v1", ...manifest }));
  return await podwright.manifest("volumes.yaml", documents.join("\n---\n"));
}

/** Waits for a text in a container's log. */
async function logShows(podwright: Podwright, name: string, container: string, wanted: RegExp): Promise<string> {
  let log = "";
  await until(
    () => `${container} of ${name} to print ${wanted}: ${log}`,
    async () => {
      log = (await podwright.run(["logs", name, container])).stdout;
      return wanted.test(log);
    },
    30_000,
  );
  return log;
}

/** Reports what a container sees of its volumes. */
const report = `
echo "shared: $(cat /shared/from-writer)"
echo "settings: $(cat /settings/level) $(stat -L -c %a /settings/level) $(readlink /settings/level)"
echo "token: $(cat /token/token) $(stat -L -c %a:%g /token/token)"
echo "about: $(cat /about/name) $(cat /about/labels) $(cat /about/limit)"
echo "all: $(cat /all/level) $(cat /all/secret/token) $(cat /all/app)"
echo "node: $(cat /node/hello)"
echo "part: $(cat /etc/level.conf)"
echo "named: $(ls /named)"
echo "group: $(stat -c %a:%g /shared) $(stat -c %a:%g /fast) $(id -G)"
for path in settings token about all; do touch /$path/x 2>/dev/null && echo "WRITABLE $path"; done
touch /node/x 2>/dev/null && echo "WRITABLE node"
grep ' /fast ' /proc/mounts
echo reported
`;

test("a pod with volumes of every type reads each of them, gets a changed ConfigMap, and leaves nothing behind", async () => {
  await withPodwright(async (podwright) => {
    const nodePath = podwright.path("node-data");
    await mkdir(nodePath);
    await writeFile(`${nodePath}/hello`, "from the node");
    const follow = `while true; do now=$(cat /settings/level); [ "$now" = "$was" ] || echo "level is $now"; was=$now; sleep 0.2; done`;
    const mounts = ["shared", "fast", "settings", "token", "about", "all"].map((name) => ({
      name,
      mountPath: `/${name}`,
    }));
    const all = pod("all", {
      securityContext: { fsGroup: 2000 },
      containers: [
        shell("writer", `mkdir -p /named; echo "hello from writer" > /shared/from-writer; ${politeSleep}`, [
          { name: "shared", mountPath: "/shared" },
        ]),
        shell(
          "reader",
          `until [ -s /shared/from-writer ]; do sleep 0.1; done; ${report} trap 'exit 0' TERM; ${follow}`,
          [
            ...mounts,
            { name: "node", mountPath: "/node", readOnly: true },
            { name: "settings", mountPath: "/etc/level.conf", subPath: "level" },
            { name: "shared", mountPath: "/named", subPathExpr: "of-$(NAME)" },
          ],
          {
            env: [{ name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
            resources: { limits: { memory: "64Mi" } },
          },
        ),
      ],
      volumes: [
        { name: "shared", emptyDir: {} },
        { name: "fast", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
        { name: "node", hostPath: { path: nodePath, type: "Directory" } },
        { name: "settings", configMap: { name: "settings", defaultMode: 0o640 } },
        { name: "token", secret: { secretName: "token", defaultMode: 0o400 } },
        {
          name: "about",
          downwardAPI: {
            items: [
              { path: "name", fieldRef: { fieldPath: "metadata.name" } },
              { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
              {
                path: "limit",
                resourceFieldRef: { containerName: "reader", resource: "limits.memory", divisor: "1Mi" },
              },
            ],
          },
        },
        {
          name: "all",
          projected: {
            sources: [
              { configMap: { name: "settings" } },
              { secret: { name: "token", items: [{ key: "token", path: "secret/token" }] } },
              { downwardAPI: { items: [{ path: "app", fieldRef: { fieldPath: "metadata.labels['app']" } }] } },
            ],
          },
        },
      ],
    });
    const secret = { kind: "Secret", metadata: { name: "token" }, stringData: { token: "hunter2" } };
    const up = await write(podwright, configMap("settings", { level: "debug" }), secret, all);
    await podwright.succeed("run", "--detach", up);
    const log = await logShows(podwright, "all", "reader", /^reported$/m);
    assert.match(log, /^shared: hello from writer$/m);
    assert.match(log, /^settings: debug 640 \.\.data\/level$/m);
    assert.match(log, /^token: hunter2 440:2000$/m);
    assert.match(log, /^about: all app="volumes" 64$/m);
    assert.match(log, /^all: debug hunter2 volumes$/m);
    assert.match(log, /^node: from the node$/m);
    assert.match(log, /^part: debug$/m);
    assert.match(log, /^group: 2777:2000 3777:2000 .*\b2000\b/m);
    assert.match(log, /^tmpfs \/fast tmpfs .*size=1024k/m);
    assert.doesNotMatch(log, /WRITABLE/);

    const { uid } = await podwright.pod("all");
    const directory = `${podwright.layout.kubeletRoot}/pods/${uid}`;
    assert.deepEqual((await readdir(`${directory}/volumes`)).toSorted(), [
      "kubernetes.io~configmap",
      "kubernetes.io~downward-api",
      "kubernetes.io~empty-dir",
      "kubernetes.io~projected",
      "kubernetes.io~secret",
    ]);
    assert.ok(existsSync(`${directory}/volumes/kubernetes.io~empty-dir/shared/of-all`));
    const journal = JSON.stringify(await podwright.journal());
    assert.ok(!journal.includes("hunter2"), "no secret reaches the journal");

    await podwright.succeed("run", "--detach", await write(podwright, configMap("settings", { level: "info" }), all));
    await logShows(podwright, "all", "reader", /^level is info$/m);
    assert.equal((await podwright.pod("all")).uid, uid, "the pod itself is left alone");
    assert.match(await podwright.succeed("timeline", "all"), /UpdateVolume +update configMap volume settings/);

    // What changes while no engine runs is there soon after the next one starts.
    await podwright.kill(await podwright.enginePid());
    await podwright.succeed("run", "--detach", await write(podwright, configMap("settings", { level: "warn" }), all));
    await logShows(podwright, "all", "reader", /^level is warn$/m);

    await podwright.succeed("stop", "all");
    assert.equal(existsSync(directory), false);
    assert.equal(await readFile(`${nodePath}/hello`, "utf8"), "from the node", "what is the node's stays");
  });
});

test("a pod waits for its ConfigMap, reports it, and starts when it exists", async () => {
  await withPodwright(async (podwright) => {
    const waiting = pod("waiting", {
      containers: [shell("app", `echo "$(cat /c/key)"; ${politeSleep}`, [{ name: "c", mountPath: "/c" }])],
      volumes: [{ name: "c", configMap: { name: "late" } }],
    });
    await podwright.succeed("run", "--detach", "--wait", "none", await write(podwright, waiting));
    await podwright.waitFor("the pod to wait", (pods) => JSON.stringify(pods).includes("configmap"));
    const { containers } = await podwright.pod("waiting");
    assert.match(
      JSON.stringify(containers),
      /MountVolume\.SetUp failed for volume \\"c\\" : configmap \\"late\\" not found/,
    );
    await podwright.succeed("run", "--detach", await write(podwright, configMap("late", { key: "here" }), waiting));
    await logShows(podwright, "waiting", "app", /here/);
  });
});

test("a link that a container puts in a volume does not show the node to other containers (CVE-2017-1002101)", async () => {
  await withPodwright(async (podwright) => {
    const volumes = [{ name: "v", emptyDir: {} }];
    const mark = podwright.path("the-nodes-secret");
    await writeFile(mark, "");
    const hostile = pod("hostile", {
      initContainers: [
        shell("attacker", `ln -s / /v/root; ln -s ../../../../.. /v/up; ln -s /v/dir /v/own; mkdir /v/dir`, [
          { name: "v", mountPath: "/v" },
        ]),
      ],
      containers: ["root", "up", "own"].map((part) =>
        shell(part, `ls -a /m${podwright.layout.stateDirectory}; ${politeSleep}`, [
          { name: "v", mountPath: "/m", subPath: part },
        ]),
      ),
      volumes,
    });
    await podwright.run(["run", "--detach", "--timeout", "5s", await write(podwright, hostile)]);
    await podwright.waitFor("the three to be refused", ([view]) =>
      (view?.containers ?? []).every((container) => JSON.stringify(container).includes("CreateContainerConfigError")),
    );
    const { containers } = await podwright.pod("hostile");
    for (const { name } of containers) {
      const text = JSON.stringify(containers.find((container) => container.name === name));
      assert.match(text, /failed to prepare subPath for volumeMount \\"v\\" of container/);
      assert.doesNotMatch(text, /EXDEV|emptyd|kubelet/, "the message tells nothing of the node");
    }
    assert.ok(existsSync(mark));
  });
});
