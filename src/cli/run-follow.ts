import type { PodRef } from "../journal/entry.ts";
import { lifeStarted } from "../journal/entry.ts";
import type { PodView } from "../server/local-api.ts";
import type { CommandContext } from "./context.ts";
import type { EngineSession } from "./engine-session.ts";
import { KnowledgeLimit, listPods, unknownPods } from "./listing.ts";
import type { RunProgress } from "./run-progress.ts";

/** The pods' views are read this long after a journal entry, and periodically. */
const VIEW_DELAY_MS = 60;
const VIEW_PERIOD_MS = 1000;
/** Refresh interval of the live region. */
const LIVE_PERIOD_MS = 100;

/** Decides whether following ends: any result but undefined is returned. */
export type FollowDecision<T> = (views: readonly PodView[], seen: ReadonlyMap<string, PodView>) => T | undefined;

/**
 * Shows the pods' progress until `decide` returns a result: actions and causes from the journal, and states from the pods'
 * views. Rejects with the signal's reason when it aborts, and when the engine keeps failing.
 */
export async function followPods<T>(
  context: Pick<CommandContext, "clock" | "layout" | "terminal">,
  session: EngineSession,
  follow: {
    readonly pods: readonly PodRef[];
    /** Sequence number of the first journal entry to be shown. */
    readonly sinceSeq: number;
    /** Undefined: shows nothing. */
    readonly progress: RunProgress | undefined;
    readonly decide: FollowDecision<T>;
    readonly signal: AbortSignal;
  },
): Promise<T> {
  const { clock, layout, terminal } = context;
  const { progress, signal } = follow;
  const ended = new AbortController();
  const both = AbortSignal.any([signal, ended.signal]);
  const hints = new Hint();
  const showEntries = async (): Promise<void> => {
    for await (const entry of session.follow(follow.sinceSeq, both)) {
      if (entry.what === lifeStarted) progress?.engineRestarted();
      const lines = progress?.entry(entry) ?? [];
      // Remove finished items from the live region first: printing redraws it.
      if (progress !== undefined && lines.length > 0) terminal.live(progress.live(clock.now()));
      print(terminal, lines);
      if (entry.pod !== undefined) hints.give();
    }
  };
  const showLive = async (): Promise<void> => {
    while (progress !== undefined && terminal.interactive && !both.aborted) {
      terminal.live(progress.live(clock.now()));
      await clock.sleep("the live region", LIVE_PERIOD_MS, both);
    }
  };
  const watchViews = async (): Promise<T> => {
    const seen = new Map<string, PodView>();
    const limit = new KnowledgeLimit(clock, layout.stateDirectory);
    for (;;) {
      signal.throwIfAborted();
      const listing = await session.call(listPods);
      const { views } = listing;
      for (const view of views) seen.set(view.uid, view);
      print(terminal, progress?.views(views, clock.now()) ?? []);
      const isWhole = unknownPods(follow.pods, listing).length === 0;
      limit.check(isWhole);
      const decision = isWhole ? follow.decide(views, seen) : undefined;
      if (decision !== undefined) return decision;
      const period = AbortSignal.any([both, hints.next()]);
      await clock.sleep("the next check of the pods", VIEW_PERIOD_MS, period).catch(() => {});
      await clock.sleep("changes that come together", VIEW_DELAY_MS, both);
    }
  };
  // A task that ends without a result must not end the others: only the views decide.
  const onlyErrors = async (work: Promise<void>): Promise<never> => {
    await work.catch((error: unknown) => {
      if (!both.aborted) throw error;
    });
    return new Promise<never>(() => {});
  };
  try {
    return await Promise.race([watchViews(), onlyErrors(showEntries()), onlyErrors(showLive())]);
  } finally {
    ended.abort();
    terminal.live([]);
  }
}

function print(terminal: CommandContext["terminal"], lines: readonly string[]): void {
  for (const line of lines) terminal.print(line);
}

/** Wakes a waiter; a hint without a waiter is kept. */
class Hint {
  #given = false;
  #waiter: AbortController | undefined;

  give(): void {
    this.#given = true;
    this.#waiter?.abort();
  }

  /** Aborts at the next hint, or immediately if there was one since the last call. */
  next(): AbortSignal {
    const waiter = new AbortController();
    if (this.#given) waiter.abort();
    this.#given = false;
    this.#waiter = waiter;
    return waiter.signal;
  }
}
