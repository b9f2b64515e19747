import { readdir, readFile } from "node:fs/promises";
import type { LoopDevices } from "../../ports/loop-devices.ts";
import { systemProcesses } from "../processes/processes.ts";

const commandTimeoutMs = 30_000;
/** The kernel appends it once the file is deleted. */
const deleted = " (deleted)";

/** Loop devices by losetup(8), found in sysfs. */
export const systemLoopDevices: LoopDevices = {
  isHeld: async (path) => (await deviceOver(path)) !== undefined,

  async hold(path) {
    if ((await deviceOver(path)) === undefined) await losetup(["--find", path], `attach a loop device to ${path}`);
  },

  async release(path) {
    const device = await deviceOver(path);
    if (device !== undefined) await losetup(["--detach", device], `detach ${device} from ${path}`);
  },
};

async function deviceOver(path: string): Promise<string | undefined> {
  for (const name of await readdir("/sys/block")) {
    if (!name.startsWith("loop")) continue;
    try {
      const text = (await readFile(`/sys/block/${name}/loop/backing_file`, "utf8")).replace(/\n$/u, "");
      if (text === path || text === `${path}${deleted}`) return `/dev/${name}`;
    } catch {
      // It is not in use.
    }
  }
  return undefined;
}

async function losetup(arguments_: readonly string[], what: string): Promise<void> {
  const environment = { LC_ALL: "C" };
  const result = await systemProcesses.run("losetup", arguments_, { timeoutMs: commandTimeoutMs, environment });
  if (result.exitCode === 0) return;
  const outcome = result.exitCode === undefined ? `ended by ${result.signal}` : `exit code ${result.exitCode}`;
  throw new Error(`cannot ${what}: ${result.stderr.trim().replaceAll("\n", "; ") || outcome}`);
}
