import { errorMessage } from "../base/errors.ts";
import type { Logger } from "../ports/log.ts";

interface RuntimeToTell {
  updateRuntimeConfig(request: {
    readonly runtimeConfig: { readonly networkConfig: { readonly podCidr: string } };
  }): Promise<unknown>;
}

/**
 * Tells the runtime of a node that stands alone which addresses its pods have (podCIDR); in a cluster the Node says so.
 * A runtime with a network configuration of its own takes no notice. Never rejects: pods may get addresses all the same.
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
