import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type CgroupDriver, cgroupPath, parseCgroupfsPath } from "../../src/resources/cgroup-names.ts";

/** Who makes the cgroups of a kubelet's pods in tests: PODWRIGHT_TEST_CGROUP_DRIVER, otherwise its containerd itself. */
export const nodeCgroupDriver: CgroupDriver =
  process.env["PODWRIGHT_TEST_CGROUP_DRIVER"] === "systemd" ? "systemd" : "cgroupfs";

/** Every path that a cgroup with this logical path has, by all drivers: `podwright run` always uses cgroupfs. */
export function cgroupPaths(path: string): string[] {
  const name = parseCgroupfsPath(path);
  return (["cgroupfs", "systemd"] as const).map((driver) => cgroupPath(name, driver));
}

/**
 * Writes a program that starts this containerd with its cgroups left to systemd, as administrators configure it.
 * @param directory for the program
 */
export async function leavingCgroupsToSystemd(containerd: string, directory: string): Promise<string> {
  const program = join(directory, "containerd");
  await mkdir(directory, { recursive: true });
  // Its shim is beside it, and found by PATH.
  const script = `#!/bin/sh
sed -i 's/SystemdCgroup = false/SystemdCgroup = true/' "$2"
PATH=${dirname(containerd)}:$PATH
exec ${containerd} "$@"
`;
  await writeFile(program, script);
  await chmod(program, 0o755);
  return program;
}
