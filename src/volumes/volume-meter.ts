import { DeadlineError } from "../base/deadline.ts";
import type { FileSystemUsage } from "../ports/stats-files.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";

/** A volume's usage. */
export interface VolumeFigures extends FileSystemUsage {
  readonly inodesUsed: number;
  /** Its health as reported by the driver; undefined: not requested, or not reported. */
  readonly condition?: { readonly abnormal: boolean; readonly message: string } | undefined;
}

/** How a volume is measured. */
export interface VolumeMeter {
  /** Upstream's label for its duration: `statfs`, or a driver's name. */
  readonly source: string;
  /** Undefined: it cannot be measured. Rejects with an error for which `isSilence` holds if there is no response. */
  read(signal: AbortSignal): Promise<VolumeFigures | undefined>;
}

/** `ETIMEDOUT` of files, `DeadlineExceeded` of gRPC. */
const lateCodes: ReadonlySet<unknown> = new Set(["ETIMEDOUT", "DeadlineExceeded"]);

/** Whether an error only means that storage, or its driver, did not respond in time. */
export function isSilence(error: unknown): boolean {
  for (let link = error; link instanceof Error && link.cause !== link; link = link.cause) {
    if (link instanceof DeadlineError || ("code" in link && lateCodes.has(link.code))) return true;
  }
  return false;
}

/** For a volume that is its own file system. */
export function fileSystemMeter(volumeFiles: Pick<VolumeFiles, "usage">, path: string): VolumeMeter {
  return {
    source: "statfs",
    read: async (signal) => {
      const usage = await volumeFiles.usage(path, signal);
      return { ...usage, inodesUsed: usage.inodes - usage.inodesFree };
    },
  };
}
