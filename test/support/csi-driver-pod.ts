import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";

const repository = resolve(import.meta.dirname, "../..");
const program = join(import.meta.dirname, "csi-pod-main.ts");

export interface DriverPodOptions {
  /** The driver's name. */
  readonly driver: string;
  /** The kubelet's root directory. */
  readonly root: string;
  /** Where the driver has its volumes. */
  readonly data: string;
  /** Of the driver's and of the registrar's health, on the node. */
  readonly ports: { readonly driver: number; readonly registrar: number };
}

/** The directory with the driver's socket and its log of calls, on the node. */
export function pluginDirectory({ driver, root }: Pick<DriverPodOptions, "driver" | "root">): string {
  return `${root}/plugins/${driver}`;
}

/** Names of the driver's calls so far that change something. */
export function driverEffects(options: Pick<DriverPodOptions, "driver" | "root">): string[] {
  const lines = readFileSync(join(pluginDirectory(options), "calls.log"), "utf8").split("\n");
  return lines.map((line) => line.split(" ")[0] ?? "").filter((name) => /Stage|Publish|Unstage|Unpublish/u.test(name));
}

/**
 * A pod as the DaemonSets of CSI drivers make it: the driver, the registrar and the liveness probe share the directory of
 * the driver's socket, and what the driver mounts for the kubelet propagates from its container.
 */
export function driverPod(name: string, options: DriverPodOptions): Fields & { readonly spec: Fields } {
  const { driver, root, ports } = options;
  const nodeName = { name: "NODE_ID", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.nodeName" } } };
  const unprivileged = { capabilities: { drop: ["ALL"] } };
  const containers = [
    container(
      "driver",
      ["--endpoint=$(CSI_ENDPOINT)", `--drivername=${driver}`, "--nodeid=$(NODE_ID)", "--data=/data"],
      {
        env: [nodeName, { name: "CSI_ENDPOINT", value: "unix:///csi/csi.sock" }],
        ports: [{ name: "healthz", containerPort: ports.driver, protocol: "TCP" }],
        livenessProbe: healthz("healthz"),
        securityContext: {
          privileged: true,
          allowPrivilegeEscalation: true,
          capabilities: { add: ["SYS_ADMIN"], drop: ["ALL"] },
        },
        volumeMounts: [
          { name: "socket-dir", mountPath: "/csi" },
          { name: "pods-mount-dir", mountPath: `${root}/pods`, mountPropagation: "Bidirectional" },
          { name: "plugins-dir", mountPath: `${root}/plugins`, mountPropagation: "Bidirectional" },
          { name: "data-dir", mountPath: "/data" },
          { name: "dev-dir", mountPath: "/dev" },
        ],
      },
    ),
    container(
      "registrar",
      [
        "--csi-address=/csi/csi.sock",
        "--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)",
        `--http-endpoint=localhost:${ports.registrar}`,
      ],
      {
        env: [{ name: "DRIVER_REG_SOCK_PATH", value: `${pluginDirectory(options)}/csi.sock` }],
        ports: [{ name: "healthz-reg", containerPort: ports.registrar, protocol: "TCP" }],
        livenessProbe: healthz("healthz-reg"),
        securityContext: unprivileged,
        volumeMounts: [
          { name: "socket-dir", mountPath: "/csi" },
          { name: "registration-dir", mountPath: "/registration" },
        ],
      },
    ),
    container("livenessprobe", ["--csi-address=/csi/csi.sock", `--http-endpoint=localhost:${ports.driver}`], {
      securityContext: unprivileged,
      volumeMounts: [{ name: "socket-dir", mountPath: "/csi" }],
    }),
  ];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", labels: { app: "driver" } },
    spec: {
      hostNetwork: true,
      dnsPolicy: "ClusterFirstWithHostNet",
      serviceAccountName: "default",
      automountServiceAccountToken: false,
      nodeSelector: { "kubernetes.io/os": "linux" },
      priorityClassName: "system-node-critical",
      tolerations: [{ operator: "Exists" }],
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      containers,
      volumes: [...driverVolumes(options), ...machineVolumes()],
    },
  };
}

function healthz(port: string): Fields {
  return {
    httpGet: { path: "/healthz", port, host: "localhost" },
    initialDelaySeconds: 1,
    timeoutSeconds: 10,
    periodSeconds: 1,
    failureThreshold: 5,
  };
}

function driverVolumes(options: DriverPodOptions): Fields[] {
  const { root, data } = options;
  const hostPath = (name: string, path: string, type = "Directory"): Fields => ({ name, hostPath: { path, type } });
  return [
    hostPath("socket-dir", pluginDirectory(options), "DirectoryOrCreate"),
    hostPath("pods-mount-dir", `${root}/pods`),
    hostPath("plugins-dir", `${root}/plugins`),
    hostPath("registration-dir", `${root}/plugins_registry`),
    hostPath("data-dir", data, "DirectoryOrCreate"),
    hostPath("dev-dir", "/dev"),
  ];
}

function container(
  role: string,
  arguments_: readonly string[],
  changed: Fields & { readonly volumeMounts: Fields[] },
): Fields {
  const volumeMounts = machineDirectories().map((mountPath, index) => {
    return { name: `machine-${index}`, mountPath, readOnly: true };
  });
  return {
    name: role,
    image: DEMO_IMAGE,
    imagePullPolicy: "IfNotPresent",
    command: [realpathSync(process.execPath), program, role],
    args: arguments_,
    resources: { requests: { cpu: "10m", memory: "20Mi" }, limits: { memory: "300Mi" } },
    ...changed,
    volumeMounts: [...changed.volumeMounts, ...volumeMounts],
  };
}

/** Instead of an image with Node.js: the machine's libraries, and this repository with its dependencies. */
function machineDirectories(): string[] {
  const own = [repository, realpathSync(join(repository, "node_modules")), dirname(realpathSync(process.execPath))];
  const all = ["/usr", "/lib", "/lib64", ...own].filter((path) => existsSync(path));
  return all.filter((path) => !all.some((other) => path.startsWith(`${other}/`)));
}

function machineVolumes(): Fields[] {
  return machineDirectories().map((path, index) => {
    return { name: `machine-${index}`, hostPath: { path: realpathSync(path), type: "Directory" } };
  });
}
