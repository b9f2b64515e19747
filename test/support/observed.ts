import type { Container } from "../../src/api/container.ts";
import type { Pod, PodSpec } from "../../src/api/pod.ts";
import { containerId, podUid, sandboxId } from "../../src/base/ids.ts";
import { containerHash } from "../../src/runtime/config/hash.ts";
import type { ContainerStatus, PodStatus, SandboxStatus } from "../../src/runtime/status/pod-status.ts";

/** A test pod, by default with one container `c`. */
export function testPod(spec: Partial<PodSpec> = {}, uid = "uid-1", name = "pod"): Pod {
  const containers: Container[] = [{ name: "c", image: "busybox" }];
  return { metadata: { name, namespace: "default", uid: podUid(uid) }, spec: { containers, ...spec } };
}

export function testSandbox(sandbox: Partial<SandboxStatus> = {}): SandboxStatus {
  return {
    id: sandboxId("s0"),
    attempt: 0,
    ready: true,
    createdAt: 1n,
    hostNetwork: false,
    ips: ["10.0.0.2"],
    ...sandbox,
  };
}

/** A container's status whose hash matches `image` (default busybox). */
export function testContainer(container: Partial<ContainerStatus> = {}): ContainerStatus {
  const name = container.name ?? "c";
  const image = container.image ?? "busybox";
  return {
    id: containerId(`${name}-id`),
    name,
    sandboxId: sandboxId("s0"),
    state: "running",
    createdAt: 1n,
    startedAt: 2n,
    finishedAt: 0n,
    exitCode: 0,
    reason: "",
    message: "",
    image,
    imageId: "sha256:1",
    hash: containerHash({ name, image }),
    restartCount: 0,
    logPath: "",
    terminationGracePeriodSeconds: 30,
    terminationMessagePath: "",
    terminationMessageHostPath: "",
    terminationMessagePolicy: "File",
    user: undefined,
    stopSignal: undefined,
    ...container,
  };
}

export function testStatus(
  sandboxes: readonly SandboxStatus[],
  containers: readonly ContainerStatus[] = [],
): PodStatus {
  return { uid: podUid("uid-1"), name: "pod", namespace: "default", sandboxes, containers };
}
