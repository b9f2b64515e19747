import type { Pod } from "../api/pod.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import { podRef } from "../runtime/pod-ref.ts";

export interface GroupOwnershipParts {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly volumeFiles: Pick<VolumeFiles, "giveToGroup">;
}

/** As upstream: progress is reported after 30 s, then every minute. */
const [firstReportMs, reportMs] = [30_000, 60_000];
const advice =
  "is taking longer than expected, consider using OnRootMismatch - https://kubernetes.io/docs/tasks/" +
  "configure-pod-container/security-context/" +
  "#configure-volume-permission-and-ownership-change-policy-for-pods";

export interface VolumeToGive {
  readonly directory: string;
  /** Where the pod has it. */
  readonly shown: string;
  readonly gid: number;
  readonly followsTop?: true;
}

/** Applies a pod's fsGroup to a volume that outlives its pods, following fsGroupChangePolicy; reports its progress. */
export async function giveVolumeToGroup(
  { clock, journal, volumeFiles }: GroupOwnershipParts,
  pod: Pod,
  { directory, shown, ...access }: VolumeToGive,
  signal: AbortSignal,
): Promise<void> {
  const at = shown.indexOf(pod.metadata.uid);
  const what = `Setting volume ownership for ${at === -1 ? shown : shown.slice(at)}`;
  let files = 0;
  let isTold = false;
  const report = (): void => {
    const message = isTold ? `${what}, processed ${files} files.` : `${what} ${advice}`;
    isTold = true;
    journal.record({ kind: "note", what: "VolumePermissionChangeInProgress", message, pod: podRef(pod) });
    timer = begin(reportMs);
  };
  const begin = (delayMs: number): Disposable =>
    clock.timer(`the files of a volume to get their group`, delayMs, report);
  let timer = begin(firstReportMs);
  try {
    const onlyOnRootMismatch = pod.spec.securityContext?.fsGroupChangePolicy === "OnRootMismatch";
    const onProgress = (inspected: number): void => void (files = inspected);
    await volumeFiles.giveToGroup(directory, { ...access, readOnly: false, onlyOnRootMismatch, onProgress }, signal);
  } finally {
    timer[Symbol.dispose]();
  }
}
