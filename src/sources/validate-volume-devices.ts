import type { Container } from "../api/container.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { type FieldError, invalid, notFound, required } from "./field-errors.ts";

/** The names of a pod's volumes, and those of them that are claims. */
interface PodVolumes {
  readonly volumeNames: ReadonlySet<string>;
  readonly claimNames: ReadonlySet<string>;
}

const onlyClaims = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
const noBacksteps = "can not contain backsteps ('..')";

/** What a container may have as block devices: claims, each once, at paths of their own (upstream: ValidateVolumeDevices). */
export function* validateVolumeDevices(
  { volumeDevices = [], volumeMounts = [] }: Container,
  path: FieldPath,
  { volumeNames, claimNames }: PodVolumes,
): Iterable<FieldError> {
  const [names, paths] = [new Set<string>(), new Set<string>()];
  for (const [index, { name, devicePath }] of volumeDevices.entries()) {
    const [atName, atPath] = [
      [...path, "volumeDevices", index, "name"],
      [...path, "volumeDevices", index, "devicePath"],
    ];
    if (name === "") yield required(atName);
    else if (!volumeNames.has(name)) yield notFound(atName, name);
    else if (!claimNames.has(name)) yield invalid(atName, name, onlyClaims);
    if (names.has(name)) yield invalid(atName, name, "must be unique");
    if (devicePath === "") yield required(atPath);
    else if (devicePath.split("/").includes("..")) yield invalid(atPath, devicePath, noBacksteps);
    else if (paths.has(devicePath)) yield invalid(atPath, devicePath, "must be unique");
    if (volumeMounts.some((mount) => mount.name === name)) {
      yield invalid(atName, name, "must not already exist in volumeMounts");
    }
    if (volumeMounts.some(({ mountPath }) => mountPath === devicePath)) {
      yield invalid(atPath, devicePath, "must not already exist as a path in volumeMounts");
    }
    names.add(name);
    paths.add(devicePath);
  }
}
