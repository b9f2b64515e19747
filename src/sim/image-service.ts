import { create } from "@bufbuild/protobuf";
import { CriError, type CriImageService } from "../ports/cri.ts";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import type { RpcCallOptions } from "../ports/rpc.ts";
import type { RegistryFaults, SimImages } from "./images.ts";
import type { SimRandom } from "./random.ts";
import { unimplemented } from "./unimplemented.ts";

interface ImageConnection {
  readonly images: SimImages;
  readonly random: SimRandom;
  readonly faults: () => RegistryFaults;
  readonly onFault: (kind: string) => void;
  /** Executes a call with its delay and faults. */
  readonly call: <T>(
    method: string,
    options: RpcCallOptions | undefined,
    work: () => T | Promise<T>,
    durationMs?: number,
  ) => Promise<T>;
}

/** The image service of the simulated runtime. */
export function imageService({ images, random, faults, onFault, call }: ImageConnection): CriImageService {
  return {
    ...unimplemented<CriImageService>(pb.ImageService),
    imageStatus: (request, options) =>
      call("imageStatus", options, () => {
        const image = images.status(request.image?.image ?? "");
        return create(pb.ImageStatusResponseSchema, image && { image });
      }),
    listImages: (_request, options) =>
      call("listImages", options, () => create(pb.ListImagesResponseSchema, { images: images.list() })),
    imageFsInfo: (_request, options) =>
      call("imageFsInfo", options, () => {
        const imageFilesystems = [{ fsId: { mountpoint: imagesMount } }];
        return create(pb.ImageFsInfoResponseSchema, { imageFilesystems, containerFilesystems: imageFilesystems });
      }),
    removeImage: (request, options) => {
      const remove = (): pb.RemoveImageResponse => {
        const { removalFails, removalLies } = faults();
        if (random.chance(removalFails)) {
          onFault("image not removed");
          throw new CriError("Unknown", "RemoveImage", "device or resource busy");
        }
        if (random.chance(removalLies)) onFault("image said to be removed");
        else images.remove(request.image?.image ?? "");
        return create(pb.RemoveImageResponseSchema);
      };
      return call("removeImage", options, remove, random.uniform() * longestRemovalMs);
    },
    pullImage: (request, options) => {
      const image = request.image?.image ?? "";
      const { pullFails, pullSlowness } = faults();
      if (pullSlowness > 1) onFault("pull slow");
      const pull = (): pb.PullImageResponse => {
        const imageRef = images.pulled(image, random, faults());
        return create(pb.PullImageResponseSchema, { imageRef });
      };
      if (pullFails > 0) onFault("registry at fault");
      return call("pullImage", options, pull, images.pullMs(image, random, faults()));
    },
  };
}

/** Its layers are deleted one by one. */
const longestRemovalMs = 3000;

/** Mount point of the simulated machine's images. */
export const imagesMount = "/var/lib/sim/images";
