import type { Container } from "../../api/container.ts";
import type { DeviceSchema } from "../../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../../ports/message-init.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import type { MountedVolumes } from "./mounted-volumes.ts";

/**
 * The devices of a container's volumeDevices, in spec order (upstream: makeBlockVolumes). Pure.
 * @throws ContainerConfigError
 */
export function volumeDevices(container: Container, mounted: MountedVolumes): MessageInit<typeof DeviceSchema>[] {
  return (container.volumeDevices ?? []).map(({ name, devicePath }) => {
    if (!devicePath.startsWith("/")) {
      throw new ContainerConfigError(`error DevicePath \`${devicePath}\` must be an absolute path`);
    }
    const volume = mounted.get(name);
    if (volume === undefined) {
      const names = `${JSON.stringify(name)} to pass into container ${JSON.stringify(container.name)}`;
      throw new ContainerConfigError(`cannot find volume ${names}`);
    }
    return { hostPath: volume.hostPath, containerPath: devicePath, permissions: volume.readOnly ? "r" : "mrw" };
  });
}
