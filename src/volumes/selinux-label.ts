import { containersOf } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { SELinuxOutcome } from "../journal/observer.ts";

export type SELinuxOptions = NonNullable<NonNullable<Container["securityContext"]>["seLinuxOptions"]>;

/** The contexts of containers' processes and files that the node's policy suggests; empty: it has none. */
export interface PolicyContexts {
  readonly process: string;
  readonly file: string;
}

/** The fields of a context, which has a level only under a policy with levels. */
interface Context {
  readonly user: string;
  readonly role: string;
  readonly type: string;
  readonly level: string;
}

/** A pod's volume cannot have one label, in upstream's words. */
export class SELinuxLabelError extends Error {
  readonly outcome: Exclude<SELinuxOutcome, "admitted">;

  constructor(outcome: SELinuxLabelError["outcome"], message: string) {
    super(message);
    this.name = "SELinuxLabelError";
    this.outcome = outcome;
  }
}

/** The name of the node's policy in /etc/selinux/config. Pure. */
export function policyName(config: string): string {
  return settingsOf(config).find(([key]) => key === "SELINUXTYPE")?.[1] ?? "";
}

/** The contexts for containers in a policy's `lxc_contexts`. Pure. */
export function policyContexts(text: string): PolicyContexts {
  const { process = "", file = "" } = Object.fromEntries(settingsOf(text).map(([key, value]) => [key.trim(), value]));
  return { process, file };
}

function settingsOf(text: string): [key: string, value: string][] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.flatMap((line): [string, string][] => {
    const at = line.indexOf("=");
    if (at < 0 || line.startsWith("#") || line.startsWith(";")) return [];
    const value = line.slice(at + 1).trim();
    return [[line.slice(0, at), value.replaceAll(/^"+|"+$/gu, "")]];
  });
}

/**
 * The label that a volume's files have in every container that mounts it (KEP-1710); undefined: it is not known before
 * the containers are created, or the pod wants each file to be labelled. Containers without options do not count, and
 * ephemeral ones only if no other mounts it: they come when it is mounted. Pure.
 * @throws SELinuxLabelError
 */
export function volumeLabel({ spec }: Pod, volume: string, policy: PolicyContexts): string | undefined {
  const mounts = ({ volumeMounts = [] }: Pick<Container, "volumeMounts">): boolean => {
    return volumeMounts.some(({ name }) => name === volume);
  };
  const lasting = containersOf(spec).filter(mounts);
  const users = lasting.length > 0 ? lasting : (spec.ephemeralContainers ?? []).filter(mounts);
  const shared = spec.securityContext;
  const labels = new Set<string>();
  let isKnown = true;
  for (const { securityContext: own } of users) {
    // As with the runtime: a container's options replace the pod's as a whole.
    const options = own?.seLinuxOptions ?? shared?.seLinuxOptions;
    if (options === undefined) continue;
    const label = fileLabel(options, policy);
    if (label === undefined) isKnown = false;
    else labels.add(label);
  }
  if (labels.size > 1) {
    throw new SELinuxLabelError("podMismatch", `multiple SELinux labels found: ${[...labels].toSorted().join(",")}`);
  }
  if (!isKnown || shared?.seLinuxChangePolicy === "Recursive") return undefined;
  const [label = ""] = labels;
  return label === "" ? undefined : label;
}

/**
 * The label of files for a container with these options: its role and type are the policy's. Empty: none; undefined: the
 * runtime chooses its level. Pure.
 * @throws SELinuxLabelError
 */
function fileLabel(options: SELinuxOptions, policy: PolicyContexts): string | undefined {
  const { user = "", role = "", type = "", level = "" } = options;
  if (user + role + type + level === "") return "";
  if (policy.process === "" || policy.file === "") return policy.file;
  const [process, file] = [contextOf(policy.process), contextOf(policy.file)];
  if (process === undefined || file === undefined) {
    const text = `&SELinuxOptions{User:${user},Role:${role},Type:${type},Level:${level},}`;
    throw new SELinuxLabelError(
      "containerError",
      `failed to construct SELinux label from context ${JSON.stringify(text)}: invalid Label`,
    );
  }
  if (level === "" && process.level !== "") return undefined;
  const fields = [user || file.user, file.role, file.type, level || file.level];
  return fields.filter((field, index) => index < 3 || field !== "").join(":");
}

function contextOf(text: string): Context | undefined {
  const [user, role, type, ...level] = text.split(":");
  if (user === undefined || role === undefined || type === undefined) return undefined;
  return { user, role, type, level: level.join(":") };
}
