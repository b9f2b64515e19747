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

/** Applies a pod's fsGroup to a volume that outlives its pods, following fsGroupChangePolicy; reports its progress. */
export async function giveVolumeToGroup(
  { clock, journal, volumeFiles }: GroupOwnershipParts,
  pod: Pod,
  directory: string,
  gid: number,
  signal: AbortSignal,
): Promise<void> {
  const { uid } = pod.metadata;
  const at = directory.indexOf(uid);
  const what = `Setting volume ownership for ${at === -1 ? directory : directory.slice(at)}`;
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
    const access = { gid, readOnly: false, onlyOnRootMismatch, onFile: () => void files++ };
    await volumeFiles.giveToGroup(directory, access, signal);
  } finally {
    timer[Symbol.dispose]();
  }
}
