import type { VolumeMount } from "../api/volume.ts";
import { MountPropagation } from "../ports/gen/runtime/v1/api_pb.js";
import { ContainerConfigError } from "../runtime/config/container-config-error.ts";

/** CRI's value of a mount's propagation. @throws ContainerConfigError for invalid values */
export function mountPropagation({ mountPropagation: mode }: VolumeMount): MountPropagation {
  switch (mode) {
    case undefined:
    case "None":
      return MountPropagation.PROPAGATION_PRIVATE;
    case "HostToContainer":
      return MountPropagation.PROPAGATION_HOST_TO_CONTAINER;
    case "Bidirectional":
      return MountPropagation.PROPAGATION_BIDIRECTIONAL;
    default:
      throw new ContainerConfigError(`invalid MountPropagation mode: ${JSON.stringify(mode)}`);
  }
}

/**
 * Whether nested mounts are read-only as well (KEP-3857).
 * @throws ContainerConfigError if that is required and impossible
 */
export function isRecursivelyReadOnly(mount: VolumeMount, runtimeCan: boolean): boolean {
  const { name, recursiveReadOnly = "Disabled", readOnly, mountPropagation: propagation = "None" } = mount;
  const refuse = (problem: string): never => {
    throw new ContainerConfigError(
      `failed to resolve recursive read-only mode: volume ${JSON.stringify(name)} requested recursive read-only mode, but it is ${problem}`,
    );
  };
  if (recursiveReadOnly === "Disabled") return false;
  if (readOnly !== true) return refuse("not read-only");
  if (propagation !== "None") return refuse(`not compatible with propagation ${JSON.stringify(propagation)}`);
  switch (recursiveReadOnly) {
    case "IfPossible":
      return runtimeCan;
    case "Enabled":
      return runtimeCan || refuse("not supported by the runtime");
    default:
      throw new ContainerConfigError(`unknown recursive read-only mode ${JSON.stringify(recursiveReadOnly)}`);
  }
}
