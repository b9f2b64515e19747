/** Differences from the default test pod. */
export interface PodOptions {
  /** Seconds; default 5. */
  readonly grace?: number;
  readonly restartPolicy?: "Always" | "OnFailure" | "Never";
  readonly hostPort?: number;
  readonly image?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Replaces the shell with its script. */
  readonly command?: readonly string[];
  /** Of init containers `init-0`, `init-1` … */
  readonly initScripts?: readonly string[];
}

/** A pod with one container `app` that runs the script in the demo image's shell. JSON, which is also YAML. */
export function podManifest(name: string, script: string, options: PodOptions = {}): string {
  return `${JSON.stringify(podObject(name, script, options), undefined, 2)}\n`;
}

/** {@link podManifest} as an object. */
export function podObject(name: string, script: string, options: PodOptions = {}): object {
  const ports = options.hostPort === undefined ? {} : { ports: [{ containerPort: 80, hostPort: options.hostPort }] };
  const container = (containerName: string, command: readonly string[]): object => {
    const image = options.image ?? "podwright.local/demo:1";
    return { name: containerName, image, imagePullPolicy: "IfNotPresent", command };
  };
  const shell = (text: string): readonly string[] => ["/bin/sh", "-c", text];
  const app = { ...container("app", options.command ?? shell(script)), ...ports };
  const init = options.initScripts?.map((text, index) => container(`init-${index}`, shell(text)));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...(options.labels && { labels: options.labels }) },
    spec: {
      restartPolicy: options.restartPolicy ?? "Always",
      terminationGracePeriodSeconds: options.grace ?? 5,
      ...(init && { initContainers: init }),
      containers: [app],
    },
  };
}

/** Exits at once on SIGTERM. */
export const politeSleep = "trap 'exit 0' TERM; while true; do sleep 1 & wait $!; done";
