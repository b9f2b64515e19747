import type { Pod } from "../api/pod.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { GroupRefusal, VolumeFiles } from "../ports/volume-files.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { OperationDependencies, OperationObserver } from "./volume-operations.ts";

/**
 * Measures a change of the group of a volume's files; as upstream, not one that OnRootMismatch made unnecessary.
 * @param give returns the number of changed files
 */
export async function measuredGroup(
  { clock, observer }: OperationDependencies,
  plugin: string,
  onlyOnRootMismatch: boolean,
  give: () => Promise<number>,
): Promise<void> {
  const sinceMs = clock.monotonic();
  const tell = (failed: boolean): void => {
    const durationMs = clock.monotonic() - sinceMs;
    const name = "volume_apply_access_control";
    observer?.storageOperation({ plugin, name, failed, migrated: false, durationMs });
  };
  let changed: number;
  try {
    changed = await give();
  } catch (error) {
    tell(true);
    throw error;
  }
  if (changed > 0 || !onlyOnRootMismatch) tell(false);
}

export interface GroupOwnershipParts {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly volumeFiles: Pick<VolumeFiles, "giveToGroup">;
  readonly observer?: OperationObserver;
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
  /** Upstream's full name of its plugin. */
  readonly plugin: string;
  /** The pod uses it, and its set-up has reported what storage refuses. */
  readonly isAgain?: boolean;
}

/** Applies a pod's fsGroup to a volume that outlives its pods, following fsGroupChangePolicy; reports its progress. */
export async function giveVolumeToGroup(
  { clock, journal, volumeFiles, observer }: GroupOwnershipParts,
  pod: Pod,
  { directory, shown, plugin, isAgain = false, ...access }: VolumeToGive,
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
    const onRefusal = ({ files: refused, problem }: GroupRefusal): void => {
      if (isAgain) return;
      const count = refused === 1 ? "1 file" : `${refused} files`;
      const message = `volume at ${shown} keeps the group or the permissions of ${count}: storage refused the change (${problem})`;
      journal.record({ kind: "note", what: "VolumeGroupRefused", message, pod: podRef(pod) });
    };
    const how = { ...access, readOnly: false, onlyOnRootMismatch, onProgress, onRefusal };
    await measuredGroup({ clock, observer }, plugin, onlyOnRootMismatch, () => {
      return volumeFiles.giveToGroup(directory, how, signal);
    });
  } finally {
    timer[Symbol.dispose]();
  }
}
