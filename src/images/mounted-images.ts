import { isCriError, type CriRuntimeService } from "../ports/cri.ts";
import type { Container } from "../ports/gen/runtime/v1/api_pb.js";

/** An image that is mounted into a container, as a volume. */
export interface MountedImage {
  readonly container: Container;
  /** The runtime's ID of it. */
  readonly image: string;
}

/**
 * The images that containers have as volumes: one that was pulled again under its name since then is known by its ID
 * only. As upstream, from the containers' statuses.
 * @throws CriError
 */
export async function mountedImages(
  runtime: Pick<CriRuntimeService, "containerStatus">,
  containers: readonly Container[],
  options: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<readonly MountedImage[]> {
  const found: MountedImage[] = [];
  for (const container of containers) {
    try {
      const { status } = await runtime.containerStatus({ containerId: container.id }, options);
      for (const { image } of status?.mounts ?? []) if (image) found.push({ container, image: image.image });
    } catch (error) {
      if (!isCriError(error, "NotFound")) throw error;
    }
  }
  return found;
}
