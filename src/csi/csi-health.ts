import { shortList } from "../base/short-list.ts";
import type { SubsystemHealth } from "../status/health.ts";
import type { OutstandingCsiCall } from "./csi-client.ts";

/** The state of the node's CSI drivers and their volumes. */
export interface CsiState {
  /** Names of registered drivers. */
  readonly drivers: readonly string[];
  /** Why the CSINode is not up to date; undefined: it is, or there is none. */
  readonly problem: string | undefined;
  /** Entries of drivers that cannot be written although the CSINode exists, as sentences. */
  readonly unpublished: readonly string[];
  /** In progress. */
  readonly calls: readonly OutstandingCsiCall[];
  /** Of pods. */
  readonly volumes: readonly DriverVolume[];
  /** Staged volumes, with the number of their pods. One that an earlier run has staged is named by its handle. */
  readonly staged: readonly (DriverVolume & { readonly pods: number })[];
  /** Paths of mounted volumes whose data files are missing or damaged. */
  readonly unknown: readonly string[];
}

interface DriverVolume {
  readonly name: string;
  readonly driver: string;
  readonly handle: string;
}

/** Longer calls are reported. */
const longCallMs = 30_000;
/** More are only counted. */
const shown = 5;

const remedies = {
  node: "see podwright's log for the API server's response; the node is not ready until the CSINode exists",
  unpublished:
    "see the API server's answer: the driver's node ID and topology come from the driver, the node's labels and rights " +
    "from the cluster; until it is listed, the cluster does not know that the driver is on this node",
  missing: "check the driver's pod on this node: its registrar must create a socket in plugins_registry",
  calls: "see the driver's own log on this node; other volumes are not affected",
  unknown:
    "unmount what nothing uses any more; until then the node's volumes count as in use, and nothing is detached that " +
    "it could be",
  staged: "see the driver's own log on this node: the volume cannot be detached before the driver has unstaged it",
} as const;

/** One finding about drivers, and one for each kind of problem. Pure. @param nowMs monotonic */
export function csiHealth(nowMs: number, state: CsiState): SubsystemHealth[] {
  const { drivers, problem, unpublished, calls, volumes, staged, unknown } = state;
  const isKnown = (driver: string): boolean => drivers.includes(driver);
  const stagedOnly = staged.filter((each) => !volumes.some((volume) => isSame(volume, each)));
  const waiting = [...volumes, ...stagedOnly].filter(({ driver }) => !isKnown(driver));
  const long = calls.filter(({ sinceMonotonicMs }) => nowMs - sinceMonotonicMs >= longCallMs);
  const unwanted = staged.filter(({ pods }) => pods === 0);
  const lines: SubsystemHealth[] = [];
  if (drivers.length > 0) {
    const registered = `${drivers.length === 1 ? "driver" : "drivers"} ${drivers.toSorted().join(", ")} registered`;
    const detail = `${registered}, ${volumes.length} volumes of pods, ${staged.length} staged`;
    lines.push({ name: "csi", ok: true, detail });
  }
  const warn = (detail: string, remedy: string): number =>
    lines.push({ name: "csi", ok: true, warning: true, detail, remedy });
  if (problem !== undefined) warn(problem, remedies.node);
  for (const each of unpublished) warn(each, remedies.unpublished);
  if (waiting.length > 0) {
    warn(`waiting for drivers that are not registered: ${list(waiting.map(nameOf))}`, remedies.missing);
  }
  if (long.length > 0) {
    const texts = long.map(({ driver, method, volume, sinceMonotonicMs }) => {
      const seconds = Math.round((nowMs - sinceMonotonicMs) / 1000);
      return `${driver} has not answered ${method}${volume === "" ? "" : ` of ${volume}`} for ${seconds} s`;
    });
    warn(list(texts), remedies.calls);
  }
  if (unwanted.length > 0) warn(`staged, but used by no pod: ${list(unwanted.map(nameOf))}`, remedies.staged);
  if (unknown.length > 0) {
    warn(`volumes are unknown, because a data file or a directory is damaged: ${list(unknown)}`, remedies.unknown);
  }
  return lines;
}

function isSame(a: DriverVolume, b: DriverVolume): boolean {
  return a.driver === b.driver && a.handle === b.handle;
}

function nameOf({ name, driver }: { readonly name: string; readonly driver: string }): string {
  return `volume ${name} (${driver})`;
}

function list(all: readonly string[]): string {
  return shortList([...new Set(all)], shown, ", ");
}
