import type { JournalEntry } from "../journal/entry.ts";
import { printable } from "../journal/text.ts";
import type { AwayDriver } from "./local-api.ts";
import { span } from "./span.ts";

/** The words of held and silent volumes: `volume disk (d.example.org) cannot be unpublished: …`. */
const heldVolume =
  /^volume \S+ \((?<driver>[^)\s]+)\) (?<problem>cannot be un(?:published|staged): .*|does not answer.*)$/su;
const isMissing = /not found in the list of registered CSI drivers/u;
/** The driver is registered, and does not answer the call. */
const isUnanswered = /^does not answer|code = (?:Unavailable|DeadlineExceeded) /u;

/**
 * The CSI drivers without which volumes cannot be released, each once. Pure.
 * @param held the entries about these volumes
 * @param node entries that include the node's own: when a driver went. Without them it is away since it was reported
 * @param open those of `held`, and other entries about volumes that are held or silent: a driver may have been silent
 * before a volume of it was held
 */
export function awayDrivers(
  held: readonly JournalEntry[],
  node: readonly JournalEntry[],
  open: readonly JournalEntry[] = held,
): AwayDriver[] {
  const away = new Map<string, AwayDriver>();
  for (const entry of held) {
    const { name, problem } = troubleOf(entry);
    if (away.has(name)) continue;
    if (isMissing.test(problem)) {
      away.set(name, { name, since: goneSince(name, node) ?? entry.time, isRegistered: false });
    } else if (isUnanswered.test(problem)) {
      away.set(name, { name, since: silentSince(name, open), isRegistered: true });
    }
  }
  return [...away.values()];
}

/** The driver of a volume, and its problem; empty: it has none. */
function troubleOf({ message }: JournalEntry): { readonly name: string; readonly problem: string } {
  const { driver: name = "", problem = "" } = heldVolume.exec(message)?.groups ?? {};
  // Types of volumes are in their place, and have no dots: a driver's name is a domain.
  const isType = problem.startsWith("does not") && !name.includes(".");
  return { name, problem: isType ? "" : problem };
}

/** The first of the entries by which a driver does not answer. */
function silentSince(driver: string, open: readonly JournalEntry[]): number {
  const silent = open.filter((entry) => {
    const { name, problem } = troubleOf(entry);
    return name === driver && isUnanswered.test(problem);
  });
  return Math.min(...silent.map(({ time }) => time));
}

/** Undefined: not known, because the journal does not have it, or it has not registered since podwright's start. */
function goneSince(driver: string, node: readonly JournalEntry[]): number | undefined {
  // A driver that comes and goes has one entry for each, which is repeated.
  const last = (wanted: JournalEntry["what"]): number =>
    Math.max(
      ...node
        .filter(({ what, data }) => what === wanted && data?.["name"] === driver)
        .map(({ time, repeated }) => repeated?.lastTime ?? time),
    );
  const gone = last("PluginGone");
  return Number.isFinite(gone) && gone >= last("PluginRegistered") ? gone : undefined;
}

/** What to do about drivers that are away, and what happens meanwhile; empty: none is. Pure. */
export function awayText(drivers: readonly AwayDriver[], now: number): string {
  if (drivers.length === 0) return "";
  const each = drivers.map(({ name, since, isRegistered }) => {
    const driver = `driver ${printable(name)}`;
    const long = span(now - since);
    // A command that waits shows it at once.
    const isNew = now - since < 1000;
    if (isRegistered) {
      return `${driver} ${isNew ? "does not answer" : `has not answered for ${long}`}: see its log, and restart it`;
    }
    return `${driver} ${isNew ? "is away" : `has been away for ${long}`}: start it again`;
  });
  return `${each.join("; ")}; until then the pod stays, and podwright keeps trying`;
}
