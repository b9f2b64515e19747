import type { VolumeSpec } from "./volume-spec.ts";
import { errorMessage } from "../base/errors.ts";
import { VolumeError } from "../runtime/volume-error.ts";

/** A failed step of a volume's set-up, in upstream's words. */
export class VolumeOperationError extends VolumeError {
  /**
   * @param operation upstream's: `MountVolume.SetUp`, `MountVolume.MountDevice`, `MapVolume.SetUpDevice`
   * @param volume the name of its directory
   * @param meanwhile the current activity: ` while expanding volume`
   */
  constructor(operation: string, volume: string, error: unknown, meanwhile = "") {
    super(`${operation} failed${meanwhile} for volume ${JSON.stringify(volume)} : ${errorMessage(error)}`, {
      cause: error,
    });
    this.name = "VolumeOperationError";
  }
}

/** The beginning of a volume's steps, as upstream names them. Pure. */
export function mountStep({ mode }: Pick<VolumeSpec, "mode">): "MapVolume" | "MountVolume" {
  return mode === "Block" ? "MapVolume" : "MountVolume";
}

/** Every event, status and log line of a problem names the volume. */
export function setUpProblem(spec: Pick<VolumeSpec, "name" | "mode">, error: unknown): VolumeOperationError {
  if (error instanceof VolumeOperationError) return error;
  return new VolumeOperationError(
    spec.mode === "Block" ? "MapVolume.SetUpDevice" : "MountVolume.SetUp",
    spec.name,
    error,
  );
}
