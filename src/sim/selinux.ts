import type { Files } from "../ports/files.ts";
import type { SimMounts } from "./machine.ts";

/** The type of files that containers may use. */
const fileType = "container_file_t";

/** The label of a volume's files for a pod with this level, as the simulated machine's policy has it. */
export function labelOfLevel(level: string): string {
  return `system_u:object_r:${fileType}:${level}`;
}

/** Enables SELinux on the machine. */
export async function enableSELinux({ files, mounts }: { readonly files: Files; mounts: SimMounts }): Promise<void> {
  mounts.hasLabels = true;
  const policy = "/etc/selinux/targeted/contexts";
  await files.makeDirectory(policy, 0o755);
  await files.write("/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n", 0o644);
  const contexts = [`process = "system_u:system_r:container_t:s0"`, `file = "${labelOfLevel("s0")}"`];
  await files.write(`${policy}/lxc_contexts`, `${contexts.join("\n")}\n`, 0o644);
}
