import type { StagedFiles } from "./device-mounts.ts";
import type { Caller } from "./volume-calls.ts";

/** Upstream's words for the steps of a set-up, by the mode of the volume. */
export interface FormWords {
  /** The step that stages, and who needs the driver for it. */
  readonly stage: { readonly step: string; readonly caller: string };
  readonly publish: { readonly step: string; readonly caller: string };
  readonly complete: string;
  /** The step in which it is expanded. */
  readonly expand: string;
}

/** How a volume lies on the disk, for its pod and for the node: as a file system or as a device. */
export interface VolumeForm {
  readonly words: FormWords;
  /** What the pod's containers get. */
  readonly hostPath: string;
  /** What its driver publishes to. */
  readonly target: string;
  /** What its driver measures. */
  readonly measured: string;
  /** What its driver stages on. */
  readonly stagingPath: string;
  readonly staged: StagedFiles;
  /** It is taken back like a staged one when its driver does not stage: there is something to be removed. */
  readonly isAlwaysStaged: boolean;
  /** Whether an earlier life may have published it. */
  isThere(): Promise<boolean>;
  /** Before its driver is called: by this it is found, and taken down. */
  save(): Promise<void>;
  /** After a call that has published nothing, for sure. */
  discard(): Promise<void>;
  /** What is left to be done once it is published. */
  complete(caller: Caller): Promise<void>;
}
