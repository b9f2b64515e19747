import { mayRun, nameOf, type WorldChange } from "../world-model.ts";
import type { SimEntry } from "./node.ts";

/** A line of a life's timeline. */
export interface Happening {
  /** Simulated time. */
  readonly atMs: number;
  /**
   * A step of the plan, its effect, faults from here on, a fault that struck, a change in the runtime, or a journal
   * entry.
   */
  readonly kind: "step" | "deed" | "fault" | "struck" | "runtime" | "journal";
  readonly text: string;
  /** The pod concerned; undefined: none, or all. */
  readonly podUid?: string | undefined;
  /** Index of the step, or of the step that caused it. */
  readonly step?: number;
}

/** podwright's action and its cause. */
export function entryText({ kind, what, message, pod, container, cause, result }: SimEntry): string {
  const about = [pod?.uid, container].filter((part) => part !== undefined).join("/");
  const why = cause === undefined ? "" : ` (because ${cause.message})`;
  return `${kind} ${what} ${about} ${message}${result === undefined ? "" : ` [${result}]`}${why}`;
}

/** What really happened, whatever podwright was told. */
export function changeText(change: WorldChange): string {
  const { type, podUid, sandbox, container, hook, probe, timeoutMs } = change;
  const id = container?.id ?? sandbox?.id ?? "";
  const about = [podUid, container === undefined ? "sandbox" : nameOf(container), id].join("/");
  const details = [
    hook && `${hook.kind}, ends with ${hook.exitCode} after ${hook.durationMs} ms`,
    probe && `${probe.type} ${probe.ok ? "passed" : "failed"}`,
    timeoutMs !== undefined && `SIGKILL after ${timeoutMs} ms`,
    type === "exited" && container !== undefined && `${container.exitCode} ${container.reason}`,
    type === "removed" && container !== undefined && mayRun(container) && "its process may still run",
  ].filter((detail) => typeof detail === "string");
  return `${type} ${about}${details.length === 0 ? "" : ` [${details.join(", ")}]`}`;
}
