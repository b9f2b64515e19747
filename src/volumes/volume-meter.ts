import { DeadlineError } from "../base/deadline.ts";
import type { FileSystemUsage } from "../ports/stats-files.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";

/** What a volume holds. */
export interface VolumeFigures extends FileSystemUsage {
  readonly inodesUsed: number;
  /** Its driver's word on its health; undefined: nobody asks, or it says nothing. */
  readonly condition?: { readonly abnormal: boolean; readonly message: string } | undefined;
}

/** How a volume is measured. */
export interface VolumeMeter {
  /** Upstream's label of its duration: `statfs`, or a driver's name. */
  readonly source: string;
  /**
   * Undefined: it can't be measured. Rejects with an error for which `isSilence` holds when nothing answers.
   */
  read(signal: AbortSignal): Promise<VolumeFigures | undefined>;
}

/** `ETIMEDOUT` of files, `DeadlineExceeded` of gRPC. */
const lateCodes: ReadonlySet<unknown> = new Set(["ETIMEDOUT", "DeadlineExceeded"]);

/** Whether an error only says that storage, or its driver, has not answered in time. */
export function isSilence(error: unknown): boolean {
  for (let link = error; link instanceof Error && link.cause !== link; link = link.cause) {
    if (link instanceof DeadlineError || ("code" in link && lateCodes.has(link.code))) return true;
  }
  return false;
}

/** Of a volume that is a file system of its own. */
export function fileSystemMeter(volumeFiles: Pick<VolumeFiles, "usage">, path: string): VolumeMeter {
  return {
    source: "statfs",
    read: async (signal) => {
      const usage = await volumeFiles.usage(path, signal);
      return { ...usage, inodesUsed: usage.inodes - usage.inodesFree };
    },
  };
}
