import type { Container } from "../../src/api/container.ts";
import type { ConfigMapManifest, PodManifest } from "../../src/api/pod.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";

/** Kinds of rich pods; see {@link richPod}. */
export type RichKind = "service" | "job" | "restarter" | "node";

export const richKinds: readonly [RichKind, ...RichKind[]] = ["service", "job", "restarter", "node"];

/** A pod that uses many features, and keeps a record of its containers' actions. */
export interface RichPod {
  readonly name: string;
  readonly kind: RichKind;
  /** Version of its manifest: another one replaces the pod. */
  readonly version: number;
  readonly manifest: PodManifest;
  readonly configMap: ConfigMapManifest;
  /** Containers that run from their start to the pod's stop. */
  readonly lasting: readonly string[];
}

/** One line of a record: an action of container `name` in a version of the pod. */
export interface Deed {
  readonly version: number;
  readonly name: string;
  /** `start`, `done` (succeeded), `failed`, `end` (got SIGTERM), `hook-start`, `hook-stop`. */
  readonly what: string;
}

/** Beginning of every container's script: functions that append to the pod's record. */
const prelude = `record() { echo "$VERSION $NAME $1" >> /record/deeds; }
record start
trap 'record end; exit 0' TERM
`;
const rest = "while true; do sleep 1 & wait $!; done";
const patient = { periodSeconds: 5, timeoutSeconds: 10, failureThreshold: 6 };

/**
 * A pod of this kind:
 * - `service`: two init containers, a sidecar with a startup probe, an application with hooks, readiness and liveness
 *   probes, a host port, a ConfigMap and subPaths;
 * - `job`: an init container and a container that fail the first time, beside two sidecars;
 * - `restarter`: one container that ends again and again beside one that stays;
 * - `node`: hostPath, a memory volume, downwardAPI, a shared process namespace.
 * @param records a directory of the node: the pod's record is below its name
 */
export function richPod(kind: RichKind, name: string, version: number, records: string, hostPort: number): RichPod {
  const shell = (container: string, script: string, more: Partial<Container> = {}): Container => ({
    name: container,
    image: DEMO_IMAGE,
    imagePullPolicy: "IfNotPresent",
    command: ["/bin/sh", "-c", `${prelude}${script}`],
    ...more,
    env: [
      { name: "VERSION", value: String(version) },
      { name: "NAME", value: container },
    ],
    volumeMounts: [
      { name: "record", mountPath: "/record" },
      { name: "work", mountPath: "/work" },
      { name: "work", mountPath: "/part", subPath: `part/of-${container}` },
      { name: "settings", mountPath: "/etc/settings.conf", subPath: "settings" },
      ...(more.volumeMounts ?? []),
    ],
  });
  const { containers, lasting, ...spec } = contents(kind, shell, hostPort);
  return {
    name,
    kind,
    version,
    lasting,
    configMap: {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `${name}-settings` },
      data: { settings: "some" },
    },
    manifest: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: {
        terminationGracePeriodSeconds: 5,
        ...spec,
        containers,
        volumes: [
          { name: "record", hostPath: { path: `${records}/${name}`, type: "DirectoryOrCreate" } },
          { name: "work", emptyDir: {} },
          { name: "settings", configMap: { name: `${name}-settings` } },
          ...(spec.volumes ?? []),
        ],
      },
    },
  };
}

type Shell = (container: string, script: string, more?: Partial<Container>) => Container;
type Contents = PodManifest["spec"] & Pick<RichPod, "lasting">;

function contents(kind: RichKind, shell: Shell, hostPort: number): Contents {
  switch (kind) {
    case "service":
      return service(shell, hostPort);
    case "job":
      return job(shell);
    case "restarter":
      return {
        lasting: ["calm"],
        containers: [shell("restless", "sleep 4 & wait $!; record failed; exit 1"), shell("calm", rest)],
      };
    case "node":
      return {
        lasting: ["init", "main"],
        shareProcessNamespace: true,
        initContainers: [shell("init", rest, { restartPolicy: "Always" })],
        containers: [
          shell("main", rest, {
            volumeMounts: [
              { name: "fast", mountPath: "/fast" },
              { name: "about", mountPath: "/about", readOnly: true },
              { name: "tmp", mountPath: "/node-tmp", readOnly: true },
            ],
            livenessProbe: { exec: { command: ["test", "-s", "/about/name"] }, ...patient, periodSeconds: 10 },
            resources: { requests: { cpu: "10m" }, limits: { memory: "32Mi", cpu: "500m" } },
          }),
        ],
        volumes: [
          { name: "fast", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
          { name: "about", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
          { name: "tmp", hostPath: { path: "/tmp", type: "Directory" } },
        ],
      };
  }
}

function service(shell: Shell, hostPort: number): Contents {
  const hook = (what: string): object => ({
    exec: { command: ["/bin/sh", "-c", `echo "$VERSION $NAME ${what}" >> /record/deeds`] },
  });
  return {
    lasting: ["mesh", "app"],
    initContainers: [
      shell("first", "echo first > /work/first; record done"),
      shell("mesh", `rm -f /work/up; sleep 0.5; touch /work/up; ${rest}`, {
        restartPolicy: "Always",
        startupProbe: { exec: { command: ["test", "-f", "/work/up"] }, ...patient, periodSeconds: 1 },
        lifecycle: { preStop: hook("hook-stop") },
      }),
      shell("second", "test -s /work/first && test -f /work/up && record done"),
    ],
    containers: [
      shell("app", `mkdir -p /work/web; echo ok > /work/web/ok; httpd -p 80 -h /work/web; ${rest}`, {
        ports: [{ name: "web", containerPort: 80, hostPort }],
        readinessProbe: { httpGet: { path: "/ok", port: "web" }, ...patient, periodSeconds: 1 },
        livenessProbe: { tcpSocket: { port: "web" }, initialDelaySeconds: 2, ...patient },
        lifecycle: { postStart: hook("hook-start"), preStop: hook("hook-stop") },
      }),
    ],
  };
}

function job(shell: Shell): Contents {
  // Earlier attempts are recorded in the pod's own volume, which a replaced pod does not have.
  const once = (then: string): string => `[ -f /part/tried ] || { touch /part/tried; record failed; exit 1; }; ${then}`;
  const sidecar = { restartPolicy: "Always" } as const;
  return {
    lasting: [],
    restartPolicy: "OnFailure",
    initContainers: [
      shell("prepare", once("record done")),
      shell("outer", rest, sidecar),
      shell("inner", rest, { ...sidecar, startupProbe: { exec: { command: ["true"] }, ...patient, periodSeconds: 1 } }),
    ],
    containers: [shell("work", once("sleep 2 & wait $!; record done"))],
  };
}

export function parseDeeds(text: string): Deed[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [version = "", name = "", what = ""] = line.split(" ");
      return { version: Number(version), name, what };
    });
}
