import { containersOf } from "../../api/all-containers.ts";
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedNode, recordedPod, vectorJson } from "../../../test/support/vectors.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { containerId, podUid } from "../../base/ids.ts";
import { ContainerConfigSchema, NamespaceMode, Signal } from "../../ports/gen/runtime/v1/api_pb.js";
import { memoryLimits } from "../../resources/memory-limits.ts";
import { type ContainerContext, type ContainerInputs, generateContainerConfig } from "./container-config.ts";
import { Annotation } from "./labels.ts";
import { expandCommand, makeEnvironment } from "./environment.ts";

const context: ContainerContext = {
  seccompProfileRoot: "/var/lib/kubelet/seccomp",
  seccompDefault: false,
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

const inputs: ContainerInputs = {
  restartCount: 0,
  imageRef: "sha256:1",
  imageUser: { uid: 0n },
  environment: [],
  command: [],
  args: [],
  edits: {},
  volumeMounts: [],
};

function generate(
  container: Partial<Container>,
  spec: Partial<Pod["spec"]> = {},
  changed: Partial<ContainerInputs> = {},
) {
  const whole = { name: "c", image: "i", ...container };
  const pod: Pod = {
    metadata: { name: "p", namespace: "ns", uid: podUid("u") },
    spec: { containers: [whole], ...spec },
  };
  return create(ContainerConfigSchema, generateContainerConfig(pod, whole, { ...inputs, ...changed }, context));
}

interface RecordedMount {
  readonly container_path: string;
  readonly host_path: string;
}

interface RecordedContainer {
  readonly labels: Readonly<Record<string, string>>;
  readonly config: {
    readonly metadata: { readonly name: string; readonly attempt?: number };
    readonly image: { readonly image: string };
    readonly envs?: readonly { readonly key: string; readonly value: string }[];
    readonly mounts: readonly RecordedMount[];
  };
}

/** The recording shows environment values as text; protobuf's JSON wants bytes in base64. */
function recordedConfig({ config }: RecordedContainer) {
  const envs = config.envs?.map(({ key, value }) => ({ key, value: Buffer.from(value).toString("base64") })) ?? [];
  return fromJson(ContainerConfigSchema, { ...config, envs } as unknown as JsonValue);
}

function recordedInputs(pod: Pod, container: Container, { config }: RecordedContainer): ContainerInputs {
  const hostPathOf = (path: string) => config.mounts.find((mount) => mount.container_path === path)?.host_path ?? "";
  const environment = makeEnvironment(pod, container, {
    objects: { configMap: () => undefined, secret: () => undefined },
    environmentFiles: () => undefined,
    podIPs: [],
    hostIPs: [],
    serviceVariables: [],
    resources: { allocatable: {} },
  });
  return {
    restartCount: config.metadata.attempt ?? 0,
    imageRef: config.image.image,
    imageUser: { uid: 0n },
    environment,
    ...expandCommand(container, environment),
    edits: memoryLimits(context.resources).edits(pod, container),
    volumeMounts: (container.volumeMounts ?? []).map(({ mountPath }) => ({
      containerPath: mountPath,
      hostPath: hostPathOf(mountPath),
    })),
    hostsFilePath: hostPathOf("/etc/hosts"),
    terminationLogPath: hostPathOf("/dev/termination-log"),
  };
}

for (const recorded of vectorJson<{ containers: RecordedContainer[] }>("cri.json").containers) {
  const pod = recordedPod(recorded.labels["io.kubernetes.pod.uid"] ?? "");
  test(`container ${recorded.config.metadata.name} of ${pod.metadata.name} is configured as the Go kubelet did`, () => {
    const expected = recordedConfig(recorded);
    const container = containersOf(pod.spec).find(({ name }) => name === recorded.config.metadata.name);
    assert.ok(container);
    const config = generateContainerConfig(pod, container, recordedInputs(pod, container, recorded), context);
    assert.deepEqual(create(ContainerConfigSchema, config), expected);
  });
}

test("a container may see the processes of another one", () => {
  const { linux } = generate({}, {}, { targetContainerId: containerId("abc") });
  const namespaces = linux?.securityContext?.namespaceOptions;
  assert.deepEqual([namespaces?.pid, namespaces?.targetId], [NamespaceMode.TARGET, "abc"]);
  const shared = generate({}, { shareProcessNamespace: true }, { targetContainerId: containerId("abc") });
  assert.equal(shared.linux?.securityContext?.namespaceOptions?.pid, NamespaceMode.POD);
});

test("the preStop hook is written as Go's JSON", () => {
  const { annotations } = generate({
    lifecycle: {
      preStop: { httpGet: { httpHeaders: [{ value: "<1>", name: "A" }], port: "web", path: "/x?a&b", scheme: "HTTP" } },
    },
  });
  assert.equal(
    annotations["io.kubernetes.container.preStopHandler"],
    String.raw`{"httpGet":{"path":"/x?a\u0026b","port":"web","scheme":"HTTP","httpHeaders":[{"name":"A","value":"\u003c1\u003e"}]}}`,
  );
  const exec = generate({ lifecycle: { preStop: { exec: { command: ["sleep", "1"] } } } });
  assert.equal(exec.annotations["io.kubernetes.container.preStopHandler"], '{"exec":{"command":["sleep","1"]}}');
  const sleep = generate({ lifecycle: { preStop: { sleep: { seconds: 0 } } } });
  assert.equal(sleep.annotations["io.kubernetes.container.preStopHandler"], '{"sleep":{"seconds":0}}');
});

test("grace periods are recorded for the kubelet that stops the container after a restart", () => {
  const container = { name: "c" };
  const pod: Pod = {
    metadata: { name: "p", namespace: "ns", uid: podUid("u"), deletionGracePeriodSeconds: 0 },
    spec: { containers: [container], terminationGracePeriodSeconds: 30 },
  };
  const { annotations } = generateContainerConfig(pod, container, inputs, context);
  assert.equal(annotations?.["io.kubernetes.pod.deletionGracePeriod"], "0");
  assert.equal(annotations["io.kubernetes.pod.terminationGracePeriod"], "30");
});

test("stop signals keep their names except plus and minus", () => {
  const signalOf = (stopSignal: string) => generate({ lifecycle: { stopSignal } }).stopSignal;
  assert.equal(generate({}).stopSignal, Signal.RUNTIME_DEFAULT);
  assert.equal(signalOf("SIGQUIT"), Signal.SIGQUIT);
  assert.equal(signalOf("SIGRTMIN+3"), Signal.SIGRTMINPLUS3);
  assert.equal(signalOf("SIGRTMAX-14"), Signal.SIGRTMAXMINUS14);
  assert.equal(signalOf("toString"), Signal.RUNTIME_DEFAULT);
});

test("the termination log is mounted only with a path, which is made absolute", () => {
  const file = { terminationLogPath: "/var/lib/x" };
  assert.deepEqual(generate({}, {}, file).mounts, []);
  assert.equal(generate({ terminationMessagePath: "dev/log" }, {}, file).mounts[0]?.containerPath, "/dev/log");
});

test("in a user namespace every mount is ID-mapped, podwright's own files and volumes", () => {
  const ids = [{ hostId: 65_536, containerId: 0, length: 65_536 }];
  const userNamespace = { mode: NamespaceMode.POD, uids: ids, gids: ids };
  const pod: Pod = {
    metadata: { name: "p", namespace: "ns", uid: podUid("u") },
    spec: { hostUsers: false, containers: [{ name: "c", image: "i", terminationMessagePath: "/dev/termination-log" }] },
  };
  const [container] = pod.spec.containers;
  assert.ok(container);
  const paths = {
    volumeMounts: [{ containerPath: "/data", hostPath: "/volume" }],
    hostsFilePath: "/pods/u/etc-hosts",
    terminationLogPath: "/pods/u/containers/c/1",
  };
  const config = generateContainerConfig(pod, container, { ...inputs, ...paths }, { ...context, userNamespace });
  assert.deepEqual(
    config.mounts?.map(({ containerPath, uidMappings, gidMappings }) => [containerPath, uidMappings, gidMappings]),
    ["/data", "/etc/hosts", "/dev/termination-log"].map((path) => [path, ids, ids]),
  );
  assert.deepEqual(config.linux?.securityContext?.namespaceOptions?.usernsOptions, userNamespace);
  const plain = generate({}, {}, paths);
  assert.ok(plain.mounts.every(({ uidMappings, gidMappings }) => uidMappings.length + gidMappings.length === 0));
});

test("resource managers' edits precede the container's own, and the kubelet's annotations take precedence", () => {
  const value = new TextEncoder().encode("0");
  const config = generate(
    { env: [{ name: "OWN", value: "1" }] },
    {},
    {
      volumeMounts: [{ containerPath: "/data", hostPath: "/v" }],
      edits: {
        resources: { cpusetCpus: "2-3", unified: { "memory.min": "1" } },
        devices: [{ containerPath: "/dev/gpu0", hostPath: "/dev/gpu0", permissions: "rw" }],
        cdiDevices: [{ name: "example.org/gpu=0" }],
        mounts: [{ containerPath: "/driver", hostPath: "/opt/driver" }],
        environment: [{ name: "VISIBLE", value }],
        annotations: { [Annotation.restartCount]: "7", "example.org/gpu": "0" },
      },
      environment: [{ name: "OWN", value: new TextEncoder().encode("1") }],
    },
  );
  assert.deepEqual(
    [config.envs.map(({ key }) => key), config.mounts.map(({ containerPath }) => containerPath)],
    [
      ["VISIBLE", "OWN"],
      ["/driver", "/data"],
    ],
  );
  assert.deepEqual([config.devices[0]?.hostPath, config.CDIDevices[0]?.name], ["/dev/gpu0", "example.org/gpu=0"]);
  assert.deepEqual([config.annotations["example.org/gpu"], config.annotations[Annotation.restartCount]], ["0", "0"]);
  const { cpusetCpus, unified } = config.linux?.resources ?? {};
  assert.deepEqual([cpusetCpus, unified], ["2-3", { "memory.min": "1" }]);
});
