import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { boundPod } from "../support/bound-pod.ts";
import { withClusterNode } from "../support/cluster-node.ts";
import { deleted, makeClaim, startClusterDriver } from "../support/csi-claims.ts";
import type { DriverCall } from "../support/csi-driver.ts";
import { until } from "../support/podwright.ts";
import { vectorText } from "../support/vectors.ts";

/** A call of the recording, with the names of the specification's fields. */
interface RecordedCall {
  readonly call: string;
  readonly request: Readonly<Record<string, unknown>>;
}

type Names = readonly (readonly [name: string, stands: string])[];

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The Go kubelet's calls for the volume of pods a and a2, in its starts. */
function recordedStarts(): RecordedCall[][] {
  const starts = vectorText("csi-calls.jsonl").trim().split('{"phase": "kubelet starts"}');
  return starts.map((lines) => {
    const calls = lines.trim().split("\n");
    return calls.map((line) => JSON.parse(line) as RecordedCall);
  });
}

const recordedNames: Names = [
  ["01446302-e91a-11f1-999b-423236085e7c", "HANDLE"],
  [sha256("01446302-e91a-11f1-999b-423236085e7c"), "HASH"],
  ["hostpath.csi.k8s.io", "DRIVER"],
  ["pvc-ed15e002-32b6-4491-94bd-11c8dd2ff152", "VOLUME"],
  ["5c2c3c23-e30e-4cef-82a7-5140ef525f84", "UID-OF-A"],
  ["de9a500b-598a-4599-b578-c2402311cf62", "UID-OF-A2"],
];

function renamed(text: string, names: Names): string {
  return names.reduce((all, [name, stands]) => all.replaceAll(name, stands), text);
}

/**
 * A call as one line. The claim's own attributes, tokens (this driver requests none) and defaults are left out.
 */
function lineOf({ call, request }: RecordedCall, names: Names): string {
  const context = Object.entries((request["volume_context"] ?? {}) as Readonly<Record<string, string>>);
  const isOwn = ([key]: readonly [string, string]): boolean =>
    key.startsWith("csi.storage.k8s.io/") && !key.endsWith(".tokens");
  const own = context.filter(isOwn).toSorted(byName);
  const { volume_context: _context, ...rest } = request;
  const fields = Object.entries(rest).toSorted(byName);
  return renamed(JSON.stringify([call.replace("Node/", ""), Object.fromEntries(fields), own]), names);
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** A call of the tests' driver in the recording's form. */
function inRecordedForm({ method, request }: DriverCall): RecordedCall {
  const capability = request["volumeCapability"] as Capability | undefined;
  const { mountFlags = [] } = capability?.accessType.value ?? {};
  const mode = { mode: capability?.accessMode?.mode };
  const fields = {
    volume_id: request["volumeId"],
    staging_target_path: request["stagingTargetPath"] || undefined,
    target_path: request["targetPath"],
    volume_capability: capability && { AccessType: { Mount: { mount_flags: mountFlags } }, access_mode: mode },
    volume_context: request["volumeContext"],
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { call: method, request: Object.fromEntries(given) };
}

interface Capability {
  readonly accessType: { readonly value?: { readonly mountFlags?: readonly string[] } };
  readonly accessMode?: { readonly mode?: number };
}

/**
 * One start's calls without repeated ones, which the recorded driver requires of a running pod's volume. The pods of a
 * start come in any order.
 */
function ordered(lines: readonly string[]): string[] {
  const once = [...new Set(lines)];
  const isPublish = (line: string): boolean => line.startsWith('["NodePublishVolume"');
  const first = once.findIndex(isPublish);
  return [
    ...once.slice(0, first),
    ...once.filter(isPublish).toSorted(),
    ...once.slice(first).filter((line) => !isPublish(line)),
  ];
}

/** The tests' driver mounts where a volume is staged, the recorded one does not. */
const isDrivers = (line: string): boolean => /\/globalmount(?:\/|$)/u.test(line);

/** What is below the node's root directory for CSI, as the recording lists it: type, mode, owner and path. */
function tree(directories: readonly string[], names: Names): string[] {
  const there = directories.filter((path) => existsSync(path));
  if (there.length === 0) return [];
  const found = execFileSync("find", [...there, "-printf", "%y %m %u:%g %p\n"], { encoding: "utf8" });
  const lines = renamed(found, names).trim().split("\n");
  return lines.filter((line) => !isDrivers(line)).toSorted();
}

/** The recorded tree, without block volumes and a file that the pod's container wrote. */
function recordedTree(name: string): string[] {
  const [entries = ""] = vectorText(name).split("-- mounts\n");
  const lines = renamed(entries, recordedNames).trim().split("\n");
  return lines.filter((line) => !isDrivers(line) && !/volumeDevices|\/mount\/f$/u.test(line)).toSorted();
}

test("the life of a claim's volume has the calls and the files of the Go kubelet", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    const { admin } = cluster.server;
    await cluster.nodeReady();
    using temporary = testDirectory();
    await using driver = await startClusterDriver(cluster, temporary.path, { podInfoOnMount: true }, {});
    const root = cluster.node.podwright.layout.kubeletRoot;
    makeClaim(cluster, "c", driver.name);
    const volumes = [{ name: "d", persistentVolumeClaim: { claimName: "c" } }];
    const data = { name: "d", mountPath: "/data" };
    const mounts = [data, { name: "d", mountPath: "/sub", subPath: "s/t" }];
    const a = { volumes, securityContext: { fsGroup: 2000 }, serviceAccountName: "default" };
    admin.create(boundPod("a", { volumeMounts: mounts }, a));
    await cluster.ready("a");
    const uidOf = (name: string): string => admin.get("pods", `default/${name}`)?.metadata.uid ?? "";
    const uid = uidOf("a");
    const pod = `${root}/pods/${uid}`;
    const shared = `${root}/plugins/kubernetes.io/csi`;
    const directories = [shared, `${pod}/volume-subpaths`, `${pod}/volumes/kubernetes.io~csi`];
    const names: [string, string][] = [
      [root, "<root>"],
      [sha256("handle-c"), "HASH"],
      ["handle-c", "HANDLE"],
      [driver.name, "DRIVER"],
      ["pv-c", "VOLUME"],
      [uid, "UID-OF-A"],
    ];
    assert.deepEqual(tree(directories, names), recordedTree("csi-tree-running.txt"));
    const mounted = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    const targets = mounted.map((line) => line.split(" ")[4] ?? "").filter((path) => path.startsWith(`${pod}/`));
    const own = targets.filter((path) => path.includes("/pv-c/")).map((path) => renamed(path, names));
    const [, recordedMounts = ""] = vectorText("csi-tree-running.txt").split("-- mounts\n");
    const theirs = recordedMounts.trim().split("\n");
    assert.deepEqual(own.toSorted(), theirs.map((line) => renamed(line.split(" ")[1] ?? "", recordedNames)).toSorted());

    admin.create(boundPod("a2", { volumeMounts: [data] }, { volumes, serviceAccountName: "default" }));
    await cluster.ready("a2");
    names.push([uidOf("a2"), "UID-OF-A2"]);
    const first = driver.effects.length;
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
    await cluster.start();
    await until("both to be confirmed", async () => driver.effects.length === first + 3);
    await deleted(cluster, "a");
    await deleted(cluster, "a2");
    await until("the volume to be unstaged", async () => driver.effects.length === first + 6);
    await until("its directory to go", async () => tree([shared], names).length === 2);
    assert.deepEqual(tree(directories, names), recordedTree("csi-tree-after-deletes.txt"));

    const asked = new Set(["NodeGetInfo", "NodeGetCapabilities", "NodeGetVolumeStats"]);
    const calls = driver.calls.filter(({ method }) => !asked.has(method)).map(inRecordedForm);
    const lines = calls.map((call) => lineOf(call, names));
    const [before = [], after = [], last = []] = recordedStarts().map((start) => {
      const all = start.filter(({ call }) => call !== "Node/NodeExpandVolume");
      return ordered(all.map((call) => lineOf(call, recordedNames)));
    });
    assert.deepEqual(ordered(lines.slice(0, first)), before);
    assert.deepEqual(ordered(lines.slice(first, first + 3)), after);
    assert.deepEqual(lines.slice(first + 3), last.slice(-3));
    assert.deepEqual(driver.violations, []);
  }, DEMO_IMAGE);
});
