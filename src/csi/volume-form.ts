import type { StagedFiles } from "./device-mounts.ts";
import type { LabelDecision } from "./publications.ts";
import type { Caller } from "./volume-calls.ts";

/** Upstream's words for the steps of a set-up, depending on the volume's mode. */
export interface FormWords {
  /** The staging step, and upstream's name of its caller. */
  readonly stage: { readonly step: string; readonly caller: string };
  readonly publish: { readonly step: string; readonly caller: string };
  readonly complete: string;
  /** The expansion step. */
  readonly expand: string;
}

/** A volume's representation on disk, for its pod and for the node: a file system or a device. */
export interface VolumeForm {
  readonly words: FormWords;
  /** The path for the pod's containers. */
  readonly hostPath: string;
  /** The path that its driver publishes to. */
  readonly target: string;
  /** The path that its driver measures. */
  readonly measured: string;
  /** The path that its driver stages to. */
  readonly stagingPath: string;
  readonly staged: StagedFiles;
  /** Unstaged even if its driver does not stage, because there are files to remove. */
  readonly isAlwaysStaged: boolean;
  /** An earlier run may have published it like this; undefined: it has not. */
  recorded(): Promise<LabelDecision | undefined>;
  /** Before the driver's call: the volume is found and torn down by this. */
  save(seLinuxLabel: string | undefined): Promise<void>;
  /** After a call that definitely published nothing. */
  discard(): Promise<void>;
  /** The steps after its publish. @param isAgain the volume is in use, and was completed before */
  complete(caller: Caller, isAgain: boolean): Promise<void>;
}
