import { errorMessage } from "../base/errors.ts";
import type { Logger } from "../ports/log.ts";

interface RuntimeToTell {
  updateRuntimeConfig(request: {
    readonly runtimeConfig: { readonly networkConfig: { readonly podCidr: string } };
  }): Promise<unknown>;
}

/**
 * Sends the pod CIDR to the runtime of a standalone node; in a cluster the Node's is used. A runtime with its own
 * network configuration ignores it. Never rejects: pods may get addresses nevertheless.
 */
export async function tellPodCidr(
  { runtime }: { readonly runtime: RuntimeToTell },
  log: Logger,
  podCidr: string,
): Promise<void> {
  if (podCidr === "") return;
  try {
    await runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr } } });
    log.info("container runtime received the pod CIDR", { podCidr });
  } catch (error) {
    log.warn("cannot send the pod CIDR to the container runtime", { podCidr, error: errorMessage(error) });
  }
}
