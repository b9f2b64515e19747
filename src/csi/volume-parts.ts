import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { LoopDevices } from "../ports/loop-devices.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { OperationObserver } from "../volumes/volume-operations.ts";
import type { CallObjects } from "./call-inputs.ts";
import type { CsiDriverObjects } from "./csi-driver-objects.ts";
import type { DeviceMounts } from "./device-mounts.ts";
import type { DriverStore } from "./driver-store.ts";
import type { Expansions } from "./expansions.ts";
import type { CsiNames } from "./names.ts";
import type { Publications } from "./publications.ts";
import type { UnknownVolumes } from "./unknown-volumes.ts";

/** Where drivers find the root directory, if that is not always so. */
export interface ToldPlace {
  /** Why they do not at present; undefined: they do. */
  readonly problem: string | undefined;
  /** Resolves once they do again. */
  readonly taken: Promise<void>;
  /** A driver is waited for, which can register only there. */
  need(): void;
}

/** The dependencies of CSI volumes. */
export interface CsiVolumeParts {
  readonly clock: Clock;
  readonly files: Files;
  readonly mounts: Pick<Mounts, "below" | "mount" | "unmount">;
  readonly loopDevices: LoopDevices;
  readonly volumeFiles: Pick<VolumeFiles, "giveToGroup">;
  readonly journal: Recorder;
  readonly observer?: OperationObserver;
  readonly log: Logger;
  readonly drivers: DriverStore;
  readonly objects: CsiDriverObjects;
  readonly calls: CallObjects;
  readonly names: CsiNames;
  /** Undefined: it is their own. */
  readonly place?: ToldPlace;
  readonly devices: DeviceMounts;
  readonly publications: Publications;
  readonly unknown: Pick<UnknownVolumes, "identify">;
  readonly expansions: Expansions;
  /** The node has no place for another volume of the driver. */
  readonly limitReached: (driver: string) => void;
  /** Interval after which a volume with requiresRepublish is due at its pod's next sync. */
  readonly republishMs: number;
  /** Drivers are queried for the health of volumes (CSIVolumeHealth). */
  readonly asksHealth: boolean;
}
