import type { JournalEntry, PodRef } from "../journal/entry.ts";
import type { EntryName } from "../journal/vocabulary.ts";
import { formatDuration, printable } from "../journal/text.ts";
import type { PodView } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";
import { hasEnded } from "../server/pod-words.ts";
import { addressLines, notReadyLines } from "./pod-text.ts";
import type { Painter } from "./terminal.ts";

/** Clean-up actions: shown only on failure. */
const quietActions: ReadonlySet<EntryName> = new Set(["RemoveContainer", "RemovePodSandbox"]);

/** Decisions whose wait is shown elsewhere: a stop shows its own countdown. */
const countedDown: ReadonlySet<EntryName> = new Set(["PodTerminating"]);

/** What a pod waits for without an end in sight. */
const awaited: ReadonlySet<EntryName> = new Set(["VolumeUnprocessed"]);

interface OpenAction {
  readonly entry: JournalEntry;
  readonly label: string;
}

interface Shown {
  readonly state: "starting" | "ready" | "unready" | "ended" | "gone";
  readonly restarts: ReadonlyMap<string, number>;
  /** Why the pod is not resized; empty: no resize is pending or failed. */
  readonly resize: string;
}

/**
 * The output of `podwright run`: turns the journal's entries and the pods' views into lines to print and lines for the live
 * region below them. Pure but for its memory of earlier calls: all times are arguments.
 */
export class RunProgress {
  readonly #paint: Painter;
  readonly #pods: ReadonlyMap<string, PodRef>;
  readonly #startedAt: number;
  readonly #stateDirectory: string;
  readonly #open = new Map<number, OpenAction>();
  readonly #shown = new Map<string, Shown>();
  /** The last shown decision of each container: repetitions are not shown. */
  readonly #decisions = new Map<string, string>();
  #waits: { readonly key: string; readonly text: string; readonly until: number }[] = [];

  /**
   * @param startedAt wall-clock milliseconds of the command's start
   * @param stateDirectory for commands that are printed
   */
  constructor(pods: readonly PodRef[], startedAt: number, paint: Painter, stateDirectory: string) {
    this.#stateDirectory = stateDirectory;
    this.#pods = new Map(pods.map((pod) => [pod.uid, pod]));
    this.#startedAt = startedAt;
    this.#paint = paint;
  }

  /** Lines to print for a journal entry; none for other pods' entries. */
  entry(entry: JournalEntry): string[] {
    const { pod } = entry;
    if (pod === undefined || !this.#pods.has(pod.uid)) return [];
    switch (entry.kind) {
      case "action":
        this.#open.set(entry.seq, { entry, label: this.#label(entry) });
        this.#waits = this.#waits.filter((wait) => wait.key !== keyOf(entry));
        return [];
      case "outcome":
        return this.#outcome(entry);
      case "decision":
        return this.#decision(entry);
      case "note":
        return [`${this.#paint.accent("·")} ${this.#label(entry)}${printable(entry.message)}`];
      case "observation":
        return awaited.has(entry.what)
          ? [`${this.#paint.caution("!")} ${this.#label(entry)}${printable(entry.message)}`]
          : [];
      case "input":
        return [];
    }
  }

  /** Lines to print for changes since the last views: pods that became ready or unready, ended, were restarted or are gone. */
  views(pods: readonly PodView[], now: number): string[] {
    const byUid = new Map(pods.map((pod) => [pod.uid, pod]));
    return [...this.#pods.values()].flatMap((ref) => this.#view(ref, byUid.get(ref.uid), now));
  }

  /** The live region: actions in progress and waits, with their times. */
  live(now: number): string[] {
    const paint = this.#paint;
    const actions = [...this.#open.values()].map(({ entry, label }) => {
      const elapsed = formatDuration(now - entry.time);
      return `${paint.accent("…")} ${label}${printable(entry.message)}   ${paint.faint(elapsed)}`;
    });
    const waits = this.#waits
      .filter((wait) => wait.until > now)
      .map((wait) => `${paint.caution("…")} ${wait.text}   ${paint.faint(`in ${formatDuration(wait.until - now)}`)}`);
    return [...actions, ...waits];
  }

  /** Actions in progress of a stopped engine will have no outcome. */
  engineRestarted(): void {
    this.#open.clear();
  }

  #outcome(entry: JournalEntry): string[] {
    const paint = this.#paint;
    const open = entry.of === undefined ? undefined : this.#open.get(entry.of);
    if (entry.of !== undefined) this.#open.delete(entry.of);
    const took = entry.durationMs === undefined ? "" : `   ${paint.faint(formatDuration(entry.durationMs))}`;
    const action = printable(open?.entry.message ?? entry.what);
    const label = this.#label(entry);
    switch (entry.result) {
      case "failed":
        return [`${paint.bad("✗")} ${label}${action}: ${paint.bad(printable(entry.message))}${took}`];
      case "unknown":
        return [`${paint.caution("?")} ${label}${action}: ${paint.caution(printable(entry.message))}${took}`];
      default:
        if (quietActions.has(entry.what)) return [];
        return [`${paint.good("✓")} ${label}${action}${took}${this.#cause(open)}`];
    }
  }

  /** The cause of an action on a pod that has been ready; a first start needs none. */
  #cause(open: OpenAction | undefined): string {
    const uid = open?.entry.pod?.uid ?? "";
    const shown = this.#shown.get(uid)?.state ?? "starting";
    const cause = open?.entry.cause;
    if (shown === "starting" || cause === undefined) return "";
    return this.#paint.faint(`   because ${printable(cause.message)}`);
  }

  #decision(entry: JournalEntry): string[] {
    if (entry.until === undefined || countedDown.has(entry.what)) return [];
    const key = keyOf(entry);
    const text = `${this.#label(entry)}${printable(entry.message)}`;
    this.#waits = [...this.#waits.filter((wait) => wait.key !== key), { key, text, until: entry.until }];
    if (this.#decisions.get(key) === entry.message) return [];
    this.#decisions.set(key, entry.message);
    const wait = formatDuration(entry.until - entry.time);
    return [`${this.#paint.caution("!")} ${text}   ${this.#paint.faint(`waits ${wait}`)}`];
  }

  #view(ref: PodRef, pod: PodView | undefined, now: number): string[] {
    const before = this.#shown.get(ref.uid);
    // A pod that is not listed yet is not gone.
    if (pod === undefined && before === undefined) return [];
    const after = shownOf(pod, before);
    this.#shown.set(ref.uid, after);
    const lines = pod === undefined ? [] : [...this.#restarts(pod, before), ...this.#resize(pod, before, after)];
    if (after.state === (before?.state ?? "starting")) return lines;
    return [...lines, ...this.#stateLines(ref, pod, after.state, now)];
  }

  #stateLines(ref: PodRef, pod: PodView | undefined, state: Shown["state"], now: number): string[] {
    const paint = this.#paint;
    const name = paint.strong(podLabel(ref));
    if (pod === undefined) return [`${paint.faint("○")} ${name} is gone`];
    switch (state) {
      case "ready": {
        const title = `${paint.good("●")} ${name} is ready   ${paint.faint(`after ${formatDuration(now - this.#startedAt)}`)}`;
        return [title, ...addressLines(pod, paint, this.#stateDirectory).map((line) => `  ${line}`)];
      }
      case "unready":
        return [`${paint.caution("●")} ${name} is not ready`, ...notReadyLines(pod).map((line) => `  ${line}`)];
      case "ended": {
        const well = pod.phase === "Succeeded";
        const colour = well ? paint.good : paint.bad;
        const lines = notReadyLines(pod);
        // Why the node ended one that succeeded all the same comes first.
        const reasons = well ? lines.slice(0, pod.reason === "" ? 0 : 1) : lines;
        return [
          `${colour("●")} ${name} ${colour(well ? "succeeded" : "failed")}`,
          ...reasons.map((line) => `  ${line}`),
        ];
      }
      case "starting":
      case "gone":
        return [];
    }
  }

  /** Containers restarted since the last views, with their restart counts; the journal's lines have the reasons. */
  #restarts(pod: PodView, before: Shown | undefined): string[] {
    if (before === undefined) return [];
    return pod.containers
      .filter((container) => container.restartCount > (before.restarts.get(container.name) ?? 0))
      .map((container) => {
        const name = `${podLabel(pod)}: container ${container.name}`;
        return `${this.#paint.caution("↻")} ${name} was restarted for the ${ordinal(container.restartCount)} time`;
      });
  }

  /** A pending or failed resize; one in progress shows as its actions. */
  #resize(pod: PodView, before: Shown | undefined, { resize }: Shown): string[] {
    if (resize === "" || resize === before?.resize) return [];
    return [`${this.#paint.caution("!")} ${podLabel(pod)} is not resized: ${this.#paint.caution(printable(resize))}`];
  }

  #label(entry: JournalEntry): string {
    return this.#pods.size > 1 && entry.pod !== undefined ? `${podLabel(entry.pod)}: ` : "";
  }
}

function shownOf(pod: PodView | undefined, before: Shown | undefined): Shown {
  if (pod === undefined) return { state: "gone", restarts: new Map(), resize: "" };
  const restarts = new Map(pod.containers.map((container) => [container.name, container.restartCount]));
  const { state, message } = pod.resize ?? { state: "InProgress", message: "" };
  const resize = state === "InProgress" ? "" : `${state}: ${message}`;
  if (hasEnded(pod)) return { state: "ended", restarts, resize };
  if (pod.ready) return { state: "ready", restarts, resize };
  // A stopping pod is not shown as unready: it has a countdown.
  const wasUp = before !== undefined && before.state !== "starting" && pod.state === "syncing";
  return { state: wasUp ? "unready" : (before?.state ?? "starting"), restarts, resize };
}

function keyOf(entry: JournalEntry): string {
  return `${entry.pod?.uid ?? ""}/${entry.container ?? ""}`;
}

function ordinal(count: number): string {
  const teen = count % 100 >= 11 && count % 100 <= 13;
  const suffix = teen ? "th" : (["th", "st", "nd", "rd"][count % 10] ?? "th");
  return `${count}${suffix}`;
}
