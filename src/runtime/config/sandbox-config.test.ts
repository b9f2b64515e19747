import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../../base/ids.ts";
import { recordedNode, recordedPod, vectorJson } from "../../../test/support/vectors.ts";
import type { Pod } from "../../api/pod.ts";
import {
  NamespaceMode,
  PodSandboxConfigSchema,
  Protocol,
  SupplementalGroupsPolicy,
} from "../../ports/gen/runtime/v1/api_pb.js";
import { generateSandboxConfig, type SandboxContext } from "./sandbox-config.ts";

const context: SandboxContext = {
  podLogsRoot: "/var/log/pods",
  clusterDomain: "",
  dns: { servers: ["10.255.255.53"] },
  cgroupDriver: "cgroupfs",
  cgroupRoot: "/",
  resources: {
    cpuQuota: true,
    cpuPeriodMicroseconds: 100_000n,
    cgroupVersion: 1,
    singleProcessOomKill: true,
    swapAccounting: true,
    allocatable: {},
    ...recordedNode,
  },
};

function pod(spec: Partial<Pod["spec"]>): Pod {
  return {
    metadata: {
      name: "web",
      namespace: "ns",
      uid: podUid("1234-5678"),
      labels: { app: "web", "io.kubernetes.pod.name": "liar" },
    },
    spec: { containers: [{ name: "c" }], ...spec },
  };
}

function generate(spec: Partial<Pod["spec"]>, changed: Partial<SandboxContext> = {}) {
  return create(PodSandboxConfigSchema, generateSandboxConfig(pod(spec), 0, { ...context, ...changed }));
}

interface RecordedSandbox {
  readonly metadata: { readonly uid: string };
  readonly config: JsonValue;
}

for (const { metadata, config } of vectorJson<{ sandboxes: RecordedSandbox[] }>("cri.json").sandboxes) {
  test(`the sandbox of pod ${metadata.uid} is configured as the Go kubelet did`, () => {
    const generated = create(PodSandboxConfigSchema, generateSandboxConfig(recordedPod(metadata.uid), 0, context));
    assert.deepEqual(generated, fromJson(PodSandboxConfigSchema, config));
  });
}

test("a pod's own labels cannot replace the kubelet's", () => {
  const { labels } = generate({});
  assert.deepEqual(labels, {
    app: "web",
    "io.kubernetes.pod.name": "web",
    "io.kubernetes.pod.namespace": "ns",
    "io.kubernetes.pod.uid": "1234-5678",
  });
});

test("the attempt counts sandboxes, not containers", () => {
  assert.equal(generateSandboxConfig(pod({}), 3, context).metadata?.attempt, 3);
});

test("every declared port is mapped once, published or not", () => {
  const { portMappings } = generate({
    initContainers: [{ name: "i", ports: [{ containerPort: 1 }] }],
    containers: [
      {
        name: "a",
        ports: [{ containerPort: 80 }, { containerPort: 80 }, { containerPort: 53, protocol: "UDP", hostPort: 53 }],
      },
      {
        name: "b",
        ports: [
          { name: "x", containerPort: 81, hostIP: "127.0.0.1" },
          { name: "x", containerPort: 82 },
        ],
      },
    ],
  });
  assert.deepEqual(
    portMappings.map((port) => [port.containerPort, port.hostPort, port.protocol, port.hostIp]),
    [
      [80, 0, Protocol.TCP, ""],
      [53, 53, Protocol.UDP, ""],
      [81, 0, Protocol.TCP, "127.0.0.1"],
    ],
  );
});

test("the node's namespaces are used as the spec requests", () => {
  const options = generate({ hostNetwork: true, hostPID: true, hostIPC: true });
  const namespaces = options.linux?.securityContext?.namespaceOptions;
  assert.equal(options.hostname, "");
  assert.deepEqual(
    [namespaces?.network, namespaces?.pid, namespaces?.ipc],
    [NamespaceMode.NODE, NamespaceMode.NODE, NamespaceMode.NODE],
  );
  const shared = generate({ shareProcessNamespace: true }).linux?.securityContext?.namespaceOptions;
  assert.equal(shared?.pid, NamespaceMode.POD);
});

test("a pod that requests a user namespace does not run without one", () => {
  assert.throws(() => generate({ hostUsers: false }), /hostUsers/);
  const ids = [{ hostId: 65_536, containerId: 0, length: 65_536 }];
  const { linux } = generate(
    { hostUsers: false },
    { userNamespace: { mode: NamespaceMode.POD, uids: ids, gids: ids } },
  );
  assert.equal(linux?.securityContext?.namespaceOptions?.usernsOptions?.uids[0]?.hostId, 65_536);
});

test("the security context of the pod reaches the sandbox", () => {
  const { linux } = generate({
    securityContext: {
      runAsGroup: 3,
      fsGroup: 5,
      supplementalGroups: [7, 9],
      supplementalGroupsPolicy: "Strict",
      seLinuxOptions: { level: "s0:c1" },
      sysctls: [{ name: "net/ipv4/tcp_syncookies", value: "1" }],
    },
    initContainers: [{ name: "i", securityContext: { privileged: true } }],
  });
  assert.deepEqual(linux?.sysctls, { "net.ipv4.tcp_syncookies": "1" });
  assert.equal(linux.securityContext?.privileged, true);
  assert.equal(linux.securityContext.runAsGroup?.value, 3n);
  assert.deepEqual(linux.securityContext.supplementalGroups, [5n, 7n, 9n]);
  assert.equal(linux.securityContext.supplementalGroupsPolicy, SupplementalGroupsPolicy.Strict);
  assert.equal(linux.securityContext.selinuxOptions?.level, "s0:c1");
});

test("the cgroup parent is a path under cgroupfs and a slice under systemd", () => {
  assert.equal(generate({}).linux?.cgroupParent, "/kubepods/besteffort/pod1234-5678");
  const systemd = generate({}, { cgroupDriver: "systemd", cgroupRoot: "/my" });
  assert.equal(systemd.linux?.cgroupParent, "my-kubepods-besteffort-pod1234_5678.slice");
});

test("overhead is separate from the pod's requests", () => {
  const { linux } = generate({
    containers: [{ name: "c", resources: { requests: { cpu: "100m" }, limits: { cpu: 1, memory: "1Gi" } } }],
    overhead: { cpu: "250m", memory: "64Mi" },
  });
  assert.equal(linux?.resources?.cpuShares, 102n);
  assert.equal(linux.resources.memoryLimitInBytes, 2n ** 30n);
  assert.deepEqual(
    [linux.overhead?.cpuShares, linux.overhead?.cpuQuota, linux.overhead?.memoryLimitInBytes],
    [256n, 25_000n, 2n ** 26n],
  );
});

test("the kernel's host name is the full one on the pod's request", () => {
  const spec = { subdomain: "sub", setHostnameAsFQDN: true };
  assert.equal(generate(spec, { clusterDomain: "cluster.local" }).hostname, "web.sub.ns.svc.cluster.local");
  assert.throws(
    () => generate(spec, { clusterDomain: "x".repeat(50) }),
    /is too long \(64 characters is the max, 65 characters requested\)/,
  );
});
