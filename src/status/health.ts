import { shortList } from "../base/short-list.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { ProbeManager } from "../prober/probe-manager.ts";
import { type StorageWait, workNouns } from "../volumes/storage-waits.ts";
import type { VolumesLeft } from "../volumes/unowned-volumes.ts";
import type { TrackedCri } from "../runtime-service/deadlines.ts";

/** PLEG is unhealthy without a successful relist for this long (genericPlegRelistThreshold). */
const plegUnhealthyMs = 3 * 60_000;

/** Further drivers that do not answer are only counted. */
const mostSilent = 5;

/** Further directories that are no pod's are only counted. */
const mostOthers = 5;

/** The health of one subsystem of the kubelet. */
export interface SubsystemHealth {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  /** It works, with a problem. */
  readonly warning?: boolean;
  readonly remedy?: string;
}

export interface HealthInputs {
  readonly pleg: Pick<Pleg, "beganMs" | "lastRelistMs" | "evented" | "discarded">;
  readonly outstanding: ReturnType<TrackedCri["outstanding"]>;
  readonly probes: ProbeManager["activity"];
  readonly volumesLeft: readonly VolumesLeft[];
  /** The longest first. */
  readonly silent: readonly StorageWait[];
  /** Problems of project quotas. */
  readonly quotas: readonly string[];
  /** Directories among those of pods that are no pod's. */
  readonly others: readonly string[];
}

/** Whether PLEG relists, at `now` (monotonic ms). Pure. */
export function plegHealth(now: number, pleg: HealthInputs["pleg"]): SubsystemHealth {
  const last = pleg.lastRelistMs;
  const listed = last === undefined ? "never relisted" : `last relist ${seconds(now - last)} ago`;
  return {
    name: "pleg",
    // The first relist has as much time as any other: a restart of podwright makes no node NotReady.
    ok: now - (last ?? pleg.beganMs) < plegUnhealthyMs,
    detail: `${listed}, ${pleg.evented ? "runtime event stream connected" : "no runtime event stream"}, ${pleg.discarded} events discarded`,
  };
}

/** The last success of each subsystem and what it waits for, at `now` (monotonic ms). */
export function kubeletHealth(
  now: number,
  { pleg, outstanding, probes, volumesLeft, silent, quotas, others }: HealthInputs,
): SubsystemHealth[] {
  const oldest = outstanding[0];
  const call = oldest && `${oldest.method} ${oldest.detail} for ${seconds(now - oldest.sinceMonotonicMs)}`;
  return [
    plegHealth(now, pleg),
    {
      name: "runtime",
      ok: oldest === undefined || now - oldest.sinceMonotonicMs < plegUnhealthyMs,
      detail: call ?? "no call in progress",
    },
    {
      name: "probes",
      ok: true,
      detail: `${probes.workers} ${probes.workers === 1 ? "probe" : "probes"}, ${probes.probing} in progress`,
    },
    ...volumesHealth(volumesLeft),
    ...storageHealth(now, silent),
    ...quotaHealth(quotas),
    ...othersHealth(others),
  ];
}

/** One line, however many there are: what to do is the same for all. */
function volumesHealth(left: readonly VolumesLeft[]): SubsystemHealth[] {
  const [first] = left;
  if (first === undefined) return [];
  const more = left.length === 1 ? "" : `, and those of ${left.length - 1} other pods`;
  const detail = `no volume plugin owns ${first.list} in ${first.directory}${more}: left in place`;
  const remedy =
    "unmount them with the driver that mounted them, or by hand; a directory is removed " +
    "within a minute once nothing is mounted in it and its volumes' directories are empty";
  return [{ name: "volumes", ok: true, warning: true, detail, remedy }];
}

/** The longest silences; the node works without what is silent. */
function storageHealth(now: number, silent: readonly StorageWait[]): SubsystemHealth[] {
  if (silent.length === 0) return [];
  const alike = Map.groupBy(silent, ({ driver, operation }) => `${driver} ${operation}`);
  const lines = [...alike.values()].flatMap(([longest, ...others]) => {
    if (longest === undefined) return [];
    const { volume, driver, pod, operation, sinceMonotonicMs } = longest;
    const whose = `volume ${volume} (${driver})${pod === undefined ? "" : ` of pod ${pod.namespace}/${pod.name}`}`;
    const more = others.length === 0 ? "" : `, and ${others.length} like it`;
    return [`${whose}: its ${workNouns[operation]} has taken ${seconds(now - sinceMonotonicMs)}${more}`];
  });
  const detail = shortList(lines, mostSilent, "; ");
  const remedy = "check the storage server, or the driver's own log on this node; other volumes are not affected";
  return [{ name: "storage", ok: true, warning: true, detail, remedy }];
}

function quotaHealth(problems: readonly string[]): SubsystemHealth[] {
  if (problems.length === 0) return [];
  const detail = `${problems.join("; ")}; volumes without a quota are measured by walking their trees`;
  const remedy =
    "install xfsprogs, and mount the file system of the kubelet's root directory with prjquota " +
    "(xfs, or ext4 with the feature project)";
  return [{ name: "volume quotas", ok: true, warning: true, detail, remedy }];
}

function othersHealth(others: readonly string[]): SubsystemHealth[] {
  if (others.length === 0) return [];
  const detail = `no pod's, and left alone: ${shortList(others, mostOthers, ", ")}`;
  const remedy = "move them to another place, or remove them: pods' directories belong to the kubelet";
  return [{ name: "pod directories", ok: true, warning: true, detail, remedy }];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
