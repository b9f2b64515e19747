import { errorMessage } from "../../base/errors.ts";
import type { Files } from "../../ports/files.ts";
import { ContainerConfigError } from "../config/container-config-error.ts";
import { hostsPath } from "../config/hosts-file.ts";

const maxHostsBytes = 10 * 1024 * 1024;

/**
 * The node's /etc/hosts, for pods on its network. Without it they would not know `localhost`, so that a start waits for
 * it.
 * @throws ContainerConfigError if it is missing, unreadable or longer than 10 MiB
 */
export async function readNodeHosts(files: Pick<Files, "read">): Promise<string> {
  try {
    return new TextDecoder().decode(await files.read(hostsPath, maxHostsBytes));
  } catch (cause) {
    throw new ContainerConfigError(`cannot read the node's ${hostsPath}: ${errorMessage(cause)}`, { cause });
  }
}
