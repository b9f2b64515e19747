import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { recordedPods, vectorText } from "../../test/support/vectors.ts";
import {
  cgroupParent,
  cgroupPath,
  isCgroupOfPod,
  parseCgroupfsPath,
  parseSystemdName,
  podCgroup,
  podUidOfCgroup,
  qosCgroup,
} from "./cgroup-names.ts";
import { qosClass } from "./qos.ts";

const uid = podUid("1234-abcd");

test("pods have the Go kubelet's cgroups", () => {
  const recorded = vectorText("cgroups-v1.txt").split("\n");
  for (const pod of recordedPods()) {
    const path = cgroupPath(podCgroup("/", qosClass(pod), pod.metadata.uid), "cgroupfs");
    assert.ok(recorded.includes(`/sys/fs/cgroup/memory${path}`), path);
  }
});

test("guaranteed pods sit directly in the cgroup of all pods", () => {
  assert.equal(cgroupPath(podCgroup("/", "Guaranteed", uid), "cgroupfs"), "/kubepods/pod1234-abcd");
  assert.equal(
    cgroupPath(podCgroup("/my/root", "Burstable", uid), "cgroupfs"),
    "/my/root/kubepods/burstable/pod1234-abcd",
  );
  assert.equal(cgroupPath(qosCgroup("/", "BestEffort"), "cgroupfs"), "/kubepods/besteffort");
});

test("systemd nests each slice in that of its prefix, and escapes dashes", () => {
  const pod = podCgroup("/", "Burstable", uid);
  assert.equal(
    cgroupPath(pod, "systemd"),
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd.slice",
  );
  assert.equal(cgroupParent(pod, "systemd"), "kubepods-burstable-pod1234_abcd.slice");
  assert.equal(cgroupParent(pod, "cgroupfs"), "/kubepods/burstable/pod1234-abcd");
  assert.equal(cgroupParent([], "systemd"), "-.slice");
});

test("cgroup names can be parsed back", () => {
  const pod = podCgroup("/my", "BestEffort", uid);
  assert.deepEqual(parseCgroupfsPath(cgroupPath(pod, "cgroupfs")), pod);
  assert.deepEqual(parseSystemdName(cgroupPath(pod, "systemd")), pod);
  assert.equal(podUidOfCgroup(cgroupPath(pod, "systemd"), "systemd"), uid);
  assert.equal(podUidOfCgroup(cgroupPath(pod, "cgroupfs"), "cgroupfs"), uid);
  assert.equal(podUidOfCgroup("/kubepods/burstable", "cgroupfs"), undefined);
});

test("a cgroup below a pod's belongs to the pod, one of a UID with the same prefix does not", () => {
  const ofPod = podUid("1234-abcd");
  for (const driver of ["cgroupfs", "systemd"] as const) {
    const path = cgroupPath(podCgroup("/node", "Burstable", ofPod), driver);
    assert.ok(isCgroupOfPod(path, ofPod), path);
    assert.ok(isCgroupOfPod(`${path}/cri-containerd-0123.scope/sub`, ofPod), path);
    for (const other of ["1234-abc", "234-abcd", "1234-abcde"]) assert.ok(!isCgroupOfPod(path, podUid(other)), other);
  }
});
