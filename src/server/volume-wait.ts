import type { JournalEntry, PodRef } from "../journal/entry.ts";
import { printable } from "../journal/text.ts";
import { podLabel } from "./pod-selector.ts";

/** An entry that a wait begins with. */
interface Wait {
  readonly entry: JournalEntry;
  /** The pod's name of the volume, of one whose set-up failed. */
  readonly volume?: string;
}

/**
 * A starting pod's wait before its containers: for a claim, an attachment, or a volume whose last attempt failed, with
 * the remedy; undefined: no known wait. Pure.
 * @param entries of the pod
 * @param othersWith the other pods that have the claim of one of its volumes, by the volume's name
 */
export function volumeWait(
  entries: readonly JournalEntry[],
  othersWith: (volume: string) => readonly PodRef[] = () => [],
): string | undefined {
  const waits = openWaits(entries);
  const [first] = waits.values();
  if (first === undefined) return undefined;
  const more = waits.size > 1 ? ` (and ${waits.size - 1} more)` : "";
  return `${textOf(first, othersWith)}${more}`;
}

/** All that a starting pod waits for, as of {@link volumeWait}, and its volumes without a wait that are set up. Pure. */
export function volumeProgress(
  entries: readonly JournalEntry[],
  othersWith: (volume: string) => readonly PodRef[] = () => [],
): {
  readonly waits: readonly { readonly text: string; readonly volume?: string }[];
  readonly isSetUp: (volume: string) => boolean;
} {
  const last = setUps(entries);
  const waits = [...openWaits(entries).values()].map((wait) => {
    return { text: textOf(wait, othersWith), ...(wait.volume !== undefined && { volume: wait.volume }) };
  });
  return { waits, isSetUp: (volume) => last.get(volume) === true };
}

/**
 * Whether the last set-up of each volume is done, of those since the pod's volumes were last removed. Each run of
 * podwright adds the pod, but sets up only what is not mounted any more.
 */
function setUps(entries: readonly JournalEntry[]): ReadonlyMap<string, boolean> {
  const removal = entries.findLastIndex(({ what }) => what === "UnmountVolumes" || what === "PodFinished");
  const volumes = new Map<number, string>();
  const last = new Map<string, boolean>();
  for (const { kind, what, data, of = 0, result, seq } of entries.slice(removal + 1)) {
    if (what !== "MountVolume" && what !== "MapVolume") continue;
    if (kind === "action") volumes.set(seq, volumeOf(data));
    const volume = volumes.get(kind === "action" ? seq : of);
    // One that is set up again was lost, as by a restart of the machine.
    if (volume !== undefined) last.set(volume, result === "done");
  }
  return last;
}

/** By the entry that ends them, oldest first. */
function openWaits(entries: readonly JournalEntry[]): ReadonlyMap<string, Wait> {
  const waits = new Map<string, Wait>();
  const volumes = new Map<number, string>();
  for (const entry of entries) {
    const { kind, what, message, data, of = 0, result, seq } = entry;
    if (what === "PodAdded" || (what === "StartContainer" && kind === "action")) waits.clear();
    else if (what === "VolumeUnprocessed" || what === "VolumeUnattached") waits.set(message, { entry });
    else if (what === "VolumeWaitOver") waits.delete(message);
    else if (what !== "MountVolume" && what !== "MapVolume") continue;
    else if (kind === "action") volumes.set(seq, volumeOf(data));
    else if (result === "done") waits.delete(keyOf(volumes.get(of)));
    else if (volumes.has(of)) waits.set(keyOf(volumes.get(of)), { entry, volume: volumes.get(of) ?? "" });
    else waits.set(message, { entry });
  }
  return waits;
}

function volumeOf(data: JournalEntry["data"]): string {
  const volume = data?.["volume"];
  return typeof volume === "string" ? volume : "";
}

/** No message has this form. */
function keyOf(volume = ""): string {
  return `volume ${JSON.stringify(volume)}`;
}

/** There is no VolumeAttachment then. */
const attachedByNobody = /has no CSIDriver object|enableControllerAttachDetach is false/u;

function textOf({ entry: { what, message }, volume }: Wait, othersWith: (volume: string) => readonly PodRef[]): string {
  if (what === "VolumeUnattached") {
    const text = printable(message);
    return attachedByNobody.test(text) ? text : `${text}; see its VolumeAttachment`;
  }
  const claim = /error processing PVC (\S+): (.*)$/su.exec(message);
  if (claim !== null) return claimText(printable(claim[1] ?? ""), printable(claim[2] ?? ""));
  const failed = /^[\w. ]+ failed[^"]*? for volume ("[^"]*") : (.*)$/su.exec(message);
  if (failed !== null) {
    const problem = printable(failed[2] ?? "");
    const others = isTaken.test(problem) && volume !== undefined ? othersWith(volume) : [];
    return `volume ${printable(failed[1] ?? "")}: ${others.length === 0 ? withRemedy(problem) : `${problem}; ${usersText(others)}`}`;
  }
  // The message about all volumes begins with a long list of names.
  return withRemedy(printable(message).replace(/^Unable to attach or mount volumes: .*?volumes=\[[^\]]*\]: /u, ""));
}

/** The words of upstream, which name no pod. */
const isTaken = /already in use by another pod/u;

function usersText(others: readonly PodRef[]): string {
  const names = others.map(podLabel).map(printable).join(", ");
  return others.length === 1
    ? `pod ${names} has it, and has to end first`
    : `one of the pods ${names} has it, and has to end first`;
}

function claimText(claim: string, problem: string): string {
  const missing = /^failed to fetch PVC from API server: .*not found(?:; (?<remedy>.*))?$/u.exec(problem);
  if (missing !== null) {
    return `claim ${claim} does not exist; ${missing.groups?.["remedy"] ?? "create it, or correct claimName"}`;
  }
  if (problem === "PVC is not bound") return `claim ${claim} is not bound; see its Events`;
  return withRemedy(`claim ${claim}: ${problem}`);
}

/** By the text of the problem. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [/PVC is not bound: /u, "add a matching PersistentVolume"],
  [/PVC is being deleted/u, "create the claim again"],
  [/\(pod is not owner\)/u, "remove the claim, or rename the pod"],
  [/but is specified in volumeMounts/u, "use volumeDevices"],
  [/but is specified in volumeDevices/u, "use volumeMounts"],
  [/not found in the list of registered CSI drivers/u, "run the driver on this node"],
  [/rpc error: code = (?:Unavailable|DeadlineExceeded) /u, "see whether its driver runs, and the driver's log"],
  [/(?:configmap|secret) "[^"]*" not found/u, "create it, or correct its name"],
  [/mount\.nfs|\/sbin\/mount\.<type> helper/u, "install the NFS client (nfs-common, nfs-utils), or see the server"],
  [isTaken, "the other pod has to end first"],
  [/no matching NodeSelectorTerms/u, "the volume belongs to another node"],
];

function withRemedy(problem: string): string {
  const remedy = remedies.find(([pattern]) => pattern.test(problem))?.[1];
  return remedy === undefined ? problem : `${problem}; ${remedy}`;
}
