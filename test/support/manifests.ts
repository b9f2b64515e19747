/** What of a test's pod is not as usual. */
export interface PodOptions {
  /** Seconds; default 5. */
  readonly grace?: number;
  readonly restartPolicy?: "Always" | "OnFailure" | "Never";
  readonly hostPort?: number;
  readonly image?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Instead of the shell with its script. */
  readonly command?: readonly string[];
}

/** A pod of one container `app` that runs the script in the demo image's shell. JSON, which is YAML as well. */
export function podManifest(name: string, script: string, options: PodOptions = {}): string {
  return `${JSON.stringify(podObject(name, script, options), undefined, 2)}\n`;
}

/** {@link podManifest} as an object. */
export function podObject(name: string, script: string, options: PodOptions = {}): object {
  const ports = options.hostPort === undefined ? {} : { ports: [{ containerPort: 80, hostPort: options.hostPort }] };
  const app = {
    name: "app",
    image: options.image ?? "podwright.local/demo:1",
    imagePullPolicy: "IfNotPresent",
    command: options.command ?? ["/bin/sh", "-c", script],
    ...ports,
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...(options.labels && { labels: options.labels }) },
    spec: {
      restartPolicy: options.restartPolicy ?? "Always",
      terminationGracePeriodSeconds: options.grace ?? 5,
      containers: [app],
    },
  };
}

/** Ends at once when it is asked to. */
export const politeSleep = "trap 'exit 0' TERM; while true; do sleep 1 & wait $!; done";
