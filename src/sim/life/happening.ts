import { mayRun, nameOf, type WorldChange } from "../world-model.ts";
import type { SimEntry } from "./node.ts";

/** One thing in a life that is worth a line of its timeline. */
export interface Happening {
  /** Simulated time. */
  readonly atMs: number;
  /**
   * A step of the plan, what it did, what goes wrong from here on, a fault that struck, what is true in the runtime, or
   * what podwright says.
   */
  readonly kind: "step" | "deed" | "fault" | "struck" | "runtime" | "journal";
  readonly text: string;
  /** The pod that it is about; undefined: none, or all. */
  readonly podUid?: string | undefined;
  /** Index of the step that it is, or that did it. */
  readonly step?: number;
}

/** What podwright says it does, and why. */
export function entryText({ kind, what, message, pod, container, cause, result }: SimEntry): string {
  const about = [pod?.uid, container].filter((part) => part !== undefined).join("/");
  const why = cause === undefined ? "" : ` (because ${cause.message})`;
  return `${kind} ${what} ${about} ${message}${result === undefined ? "" : ` [${result}]`}${why}`;
}

/** What really happened, whatever podwright was told of it. */
export function changeText(change: WorldChange): string {
  const { type, podUid, sandbox, container, hook, probe, timeoutMs } = change;
  const id = container?.id ?? sandbox?.id ?? "";
  const about = [podUid, container === undefined ? "sandbox" : nameOf(container), id].join("/");
  const details = [
    hook && `${hook.kind}, ends with ${hook.exitCode} after ${hook.durationMs} ms`,
    probe && `${probe.type} ${probe.ok ? "well" : "not well"}`,
    timeoutMs !== undefined && `SIGKILL after ${timeoutMs} ms`,
    type === "exited" && container !== undefined && `${container.exitCode} ${container.reason}`,
    type === "removed" && container !== undefined && mayRun(container) && "its process may still run",
  ].filter((detail) => typeof detail === "string");
  return `${type} ${about}${details.length === 0 ? "" : ` [${details.join(", ")}]`}`;
}
