import { ExitCode, PodwrightError } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import { parseCpuList } from "../resources/cpu-list.ts";

const onlinePath = "/sys/devices/system/cpu/online";
const maxBytes = 64 * 1024;

/**
 * Checks that reservedSystemCPUs, a valid list, are CPUs of this machine.
 * @throws PodwrightError (bad input) in upstream's words
 */
export async function checkReservedProcessors(files: Pick<Files, "read">, reserved = ""): Promise<void> {
  if (reserved === "") return;
  let online: string;
  try {
    online = new TextDecoder().decode(await files.read(onlinePath, maxBytes)).trim();
  } catch (error) {
    // Without information from the kernel none counts as missing.
    if (error instanceof FileError) return;
    throw error;
  }
  const there = parseCpuList(online);
  if (parseCpuList(reserved).isSubsetOf(there)) return;
  throw new PodwrightError(ExitCode.badInput, `reserved-cpus: ${reserved} is not a subset of online-cpus: ${online}`, {
    remedy: "set reservedSystemCPUs (--reserved-cpus) to CPUs of this machine",
  });
}
