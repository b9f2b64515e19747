import type { ContainerId } from "../../base/ids.ts";
import type { Cause, PodRef, Recorder } from "../../journal/entry.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { PreStopHooks } from "./pre-stop-hooks.ts";

/** A container that is to be stopped. */
export interface ToldContainer {
  readonly id: ContainerId;
  readonly name: string;
  /** What its Event says; default: that it is stopped. */
  readonly eventMessage?: string;
}

/**
 * Tells that a container is being stopped, which is upstream's Event Killing: before its preStop hook begins and before it
 * waits for its turn, as either may take minutes. However often it is tried, one cause is told once.
 */
export function tellKill(
  { journal, preStops }: { readonly journal: Recorder; readonly preStops: PreStopHooks },
  pod: PodRef,
  { id, name, eventMessage = `Stopping container ${name}` }: ToldContainer,
  cause: Cause,
): void {
  if (!preStops.isNewKill(id, cause.code)) return;
  journal.record({
    kind: "decision",
    what: "Killing",
    message: `stopping container ${name} (${shortId(id)})`,
    pod,
    container: name,
    cause,
    data: { id, eventMessage },
  });
}
