import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";

/** Default values of nearly every pod. */
const usual: Readonly<Record<string, unknown>> = {
  dnsPolicy: "ClusterFirst",
  schedulerName: "default-scheduler",
  enableServiceLinks: true,
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
  imagePullPolicy: "IfNotPresent",
  protocol: "TCP",
  defaultMode: 0o644,
};

/** A manifest without common defaults: a line for the pod, and one for each container. */
export function podText({ metadata: { name, uid, annotations }, spec }: Pod): string {
  const { containers, initContainers = [], ephemeralContainers = [], ...rest } = spec;
  const about = fields({ ...rest, ...(annotations && { annotations }) });
  const line = (kind: string, { name: given, command = [], ...container }: Partial<Container>): string =>
    `${kind} ${given}: ${[command.join(" "), fields(container)].filter((part) => part !== "").join(", ")}`;
  return [
    `${name} (${uid}): ${about}`,
    ...initContainers.map((container) => line("init container", container)),
    ...containers.map((container) => line("container", container)),
    ...ephemeralContainers.map(({ name: given }) => `ephemeral container ${given}`),
  ].join("\n");
}

/** The differences of two versions of a manifest: path, before, after. */
export function podDifferences(before: Pod, after: Pod): string[] {
  const [old, young] = [before, after].map(({ metadata: { labels }, spec }) => ({ labels, ...spec }));
  return differences("", old, young);
}

/** Changed fields with their previous values. */
export function differences(path: string, before: unknown, after: unknown): string[] {
  if (isObject(before) && isObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    const under = (key: string): string =>
      Array.isArray(after) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    return [...keys].flatMap((key) => differences(under(key), before[key], after[key]));
  }
  return before === after ? [] : [`${path}: ${flow(before)} → ${flow(after)}`];
}

function fields(of: object): string {
  const shown = Object.entries(of).filter(([key, value]) => value !== undefined && !isUsual(key, value));
  return shown.map(([key, value]) => `${key} ${flow(value)}`).join(", ");
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (isObject(value)) return `{${fields(value)}}`;
  if (typeof value === "string") return value;
  return value === undefined ? "none" : JSON.stringify(value);
}

function isUsual(key: string, value: unknown): boolean {
  if (key === "resources" || key === "securityContext") return isObject(value) && Object.keys(value).length === 0;
  return usual[key] === value;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
