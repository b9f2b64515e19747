import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import type { AwayDriver, PodView } from "../server/local-api.ts";
import type { CommandContext } from "./context.ts";
import type { EngineSession } from "./engine-session.ts";
import { gonePods, KnowledgeLimit, listPods, unknownPods } from "./listing.ts";
import { formatDuration, wrap } from "../journal/text.ts";
import { awayText } from "../server/away-drivers.ts";
import { podLabel } from "../server/pod-selector.ts";

const POLL_MS = 200;
/** On narrower terminals lines are cut. */
const leastColumns = 20;

/**
 * The progress of a stopping pod, in one line.
 * @param told the problems of drivers that need not be told again; those that this line tells are added
 */
export function stoppingLine(pod: PodView, now: number, told = new Set<string>()): string {
  const label = podLabel(pod);
  if (pod.state === "terminated") {
    const remedy = awayText(untold(pod.awayDrivers ?? [], told), now);
    return `stopping ${label}: ${pod.holdout ?? "cleaning up"}${remedy === "" ? "" : `; ${remedy}`}`;
  }
  if (pod.killAt === undefined) return `stopping ${label}`;
  const seconds = Math.ceil((pod.killAt - now) / 1000);
  return seconds > 0 ? `stopping ${label}: ${seconds} s until SIGKILL` : `stopping ${label}: SIGKILL is sent`;
}

function untold(drivers: readonly AwayDriver[], told: Set<string>): readonly AwayDriver[] {
  const keyOf = ({ name, isRegistered }: AwayDriver): string => `${name} ${isRegistered}`;
  const found = drivers.filter((driver) => !told.has(keyOf(driver)));
  for (const driver of found) told.add(keyOf(driver));
  return found;
}

/**
 * Requests the pods' stop; a smaller grace period than before shortens it. A missing pod is not an error.
 * @throws PodwrightError if the engine rejects a stop, or never learns of a pod; the signal's reason
 */
export async function requestStop(
  context: Pick<CommandContext, "clock" | "layout">,
  session: Pick<EngineSession, "call">,
  pods: readonly PodRef[],
  options: { readonly graceSeconds: number | undefined; readonly signal: AbortSignal },
): Promise<readonly PodView[]> {
  const views = await Promise.all(pods.map((pod) => stopOne(context, session, pod, options)));
  return views.filter((view) => view !== undefined);
}

/** What stopped CSI drivers leave to be released: a line for each. */
export function servedLines(stopped: readonly PodView[]): string[] {
  const uids = new Set(stopped.map(({ uid }) => uid));
  return stopped.flatMap((driver) => {
    const left = (driver.serves ?? []).filter(({ uid }) => !uids.has(uid)).map(podLabel);
    if (left.length === 0) return [];
    return `${podLabel(driver)} serves CSI volumes of ${left.join(", ")}, whose end will wait until a driver runs again`;
  });
}

async function stopOne(
  { clock, layout }: Pick<CommandContext, "clock" | "layout">,
  session: Pick<EngineSession, "call">,
  pod: PodRef,
  { graceSeconds, signal }: Parameters<typeof requestStop>[3],
): Promise<PodView | undefined> {
  const limit = new KnowledgeLimit(clock, layout.stateDirectory);
  for (;;) {
    try {
      return await session.call((engine) => engine.stop(pod.uid, graceSeconds));
    } catch (error) {
      if (!(error instanceof PodwrightError) || error.exitCode !== ExitCode.badInput) throw error;
      const listing = await session.call(listPods);
      if (listing.views.some(({ uid }) => uid === pod.uid)) throw error;
      if (gonePods([pod], listing).length > 0) return undefined;
      limit.check(false);
    }
    await clock.sleep("the engine to know the pod", POLL_MS, signal);
  }
}

/**
 * Waits until the pods are gone and shows the countdown of their grace periods: in place on a terminal, otherwise one
 * line when a pod's countdown begins. Rejects with the signal's reason when it aborts first; the stop then continues.
 */
export async function waitUntilGone(
  context: Pick<CommandContext, "clock" | "layout" | "terminal">,
  session: Pick<EngineSession, "call">,
  pods: readonly PodRef[],
  options: { readonly quiet: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { terminal, clock, layout } = context;
  const began = clock.monotonic();
  let remaining = pods;
  const announced = new Map<string, Announced>();
  const told = new Set<string>();
  const limit = new KnowledgeLimit(clock, layout.stateDirectory);
  using _region = { [Symbol.dispose]: () => terminal.live([]) };
  while (remaining.length > 0) {
    const listing = await session.call(listPods);
    const byUid = new Map(listing.views.map((view) => [view.uid, view]));
    const gone = new Set(gonePods(remaining, listing));
    remaining = remaining.filter((pod) => !gone.has(pod));
    limit.check(unknownPods(remaining, listing).length === 0);
    const toldHere = new Set<string>();
    const shownPods = remaining.flatMap((pod) => byUid.get(pod.uid) ?? []);
    const lines = shownPods.map((view) => stoppingLine(view, clock.now(), toldHere));
    if (!options.quiet) {
      // A line that is cut would lack what to do.
      const shown = lines.flatMap((line) => wrap(line, Math.max(terminal.columns - 1, leastColumns)));
      terminal.live(shown.map((line) => terminal.paint.caution(line)));
      for (const pod of gone) {
        const took = formatDuration(clock.monotonic() - began);
        terminal.print(`${terminal.paint.good("✓")} ${podLabel(pod)} is stopped   ${terminal.paint.faint(took)}`);
      }
      if (!terminal.interactive) announce(context, remaining, byUid, { announced, told });
    }
    if (remaining.length > 0) await clock.sleep("the pods' end", POLL_MS, options.signal);
  }
}

/** What was printed of a pod last. */
interface Announced {
  readonly killAt: number | undefined;
  readonly holdout: string | undefined;
}

/** Prints a line for each pod, and another one if its grace period was shortened, or a volume holds it. */
function announce(
  { terminal, clock }: Pick<CommandContext, "terminal" | "clock">,
  pods: readonly PodRef[],
  views: ReadonlyMap<string, PodView>,
  { announced, told }: { readonly announced: Map<string, Announced>; readonly told: Set<string> },
): void {
  for (const { uid } of pods) {
    const view = views.get(uid);
    if (view === undefined || view.state === "syncing") continue;
    const { killAt, holdout } = view;
    const before = announced.get(uid);
    const isNearer = killAt !== undefined && killAt < (before?.killAt ?? Number.POSITIVE_INFINITY) - 500;
    const isHeld = holdout !== undefined && holdout !== before?.holdout;
    const isNew = before === undefined && view.state === "terminating";
    if (!isNew && !isNearer && !isHeld) continue;
    announced.set(uid, { killAt: killAt ?? before?.killAt, holdout });
    terminal.print(stoppingLine(view, clock.now(), told));
  }
}
