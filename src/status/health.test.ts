import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { type HealthInputs, kubeletHealth } from "./health.ts";

const well: HealthInputs = {
  pleg: { beganMs: 1000, lastRelistMs: 2000, evented: true, discarded: 0 },
  outstanding: [],
  probes: { workers: 0, probing: 0 },
  volumesLeft: [],
  others: [],
  silent: [],
  quotas: [],
};

function plegAt(now: number, lastRelistMs: number | undefined): { readonly ok: boolean; readonly detail: string } {
  const [check] = kubeletHealth(now, { ...well, pleg: { ...well.pleg, lastRelistMs } });
  return check ?? assert.fail("there is no check");
}

test("a node is ready before its first relist, until that takes too long", () => {
  assert.equal(plegAt(2000, undefined).ok, true);
  assert.match(plegAt(2000, undefined).detail, /^never relisted/);
  assert.equal(plegAt(182_000, undefined).ok, false);
});

test("PLEG is unhealthy after three minutes without a relist", () => {
  assert.equal(plegAt(200_000, 150_000).ok, true);
  assert.equal(plegAt(331_000, 150_000).ok, false);
});

test("leftover volumes are a warning that names them and the remedy; without any there is none", () => {
  const left = (uid: string) => ({
    pod: { uid: podUid(uid), namespace: "default", name: uid },
    directory: `/var/lib/kubelet/pods/${uid}`,
    list: "volumes/kubernetes.io~csi/pvc-1 (mounted)",
  });
  const check = (volumesLeft: HealthInputs["volumesLeft"]) =>
    kubeletHealth(2000, { ...well, volumesLeft }).find(({ name }) => name === "volumes");
  assert.equal(check([]), undefined);
  const one = check([left("a")]);
  assert.deepEqual([one?.ok, one?.warning], [true, true]);
  const volume = "no volume plugin owns volumes/kubernetes.io~csi/pvc-1 (mounted) in /var/lib/kubelet/pods/a";
  assert.equal(one?.detail, `${volume}: left in place`);
  assert.match(one?.remedy ?? "", /or by hand; a directory is removed within a minute/);
  assert.equal(check([left("a"), left("b"), left("c")])?.detail, `${volume}, and those of 2 other pods: left in place`);
});

test("directories that are no pod's are named", () => {
  const check = (others: readonly string[]) =>
    kubeletHealth(2000, { ...well, others }).find(({ name }) => name === "pod directories");
  assert.equal(check([]), undefined);
  assert.equal(check(["/r/pods/x.bak"])?.detail, "no pod's, and left alone: /r/pods/x.bak");
});

test("volumes that do not respond are reported by their drivers, the longest of each first", () => {
  const wait = (pod: string, driver: string, sinceMonotonicMs: number): HealthInputs["silent"][number] => {
    const ref = { namespace: "ns", name: pod, uid: podUid(pod) };
    return { pod: ref, volume: `pv-${pod}`, driver, operation: "tear down", sinceMonotonicMs };
  };
  const silent = [wait("a", "d", 0), wait("b", "nfs", 1_000), wait("c", "d", 2_000)];
  const check = kubeletHealth(40_000, { ...well, silent }).find(({ name }) => name === "storage");
  assert.deepEqual([check?.ok, check?.warning], [true, true], "the node stays ready");
  assert.equal(
    check?.detail,
    "volume pv-a (d) of pod ns/a: its teardown has taken 40.0 s, and 1 like it; " +
      "volume pv-b (nfs) of pod ns/b: its teardown has taken 39.0 s",
  );
  assert.ok(!kubeletHealth(40_000, well).some(({ name }) => name === "storage"));
});

test("problems of project quotas are named with what helps, and the node works without quotas", () => {
  const quotas = ["cannot look at the file system: xfs_quota is missing: install xfsprogs"];
  const check = kubeletHealth(2000, { ...well, quotas }).find(({ name }) => name === "volume quotas");
  assert.equal(
    check?.detail,
    "cannot look at the file system: xfs_quota is missing: install xfsprogs; " +
      "volumes without a quota are measured by walking their trees",
  );
  assert.deepEqual([check.ok, check.warning], [true, true]);
  assert.ok(!kubeletHealth(2000, well).some(({ name }) => name === "volume quotas"));
});
