import type { ContainerId } from "../../base/ids.ts";
import type { Cause, PodRef, Recorder } from "../../journal/entry.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { PreStopHooks } from "./pre-stop-hooks.ts";

/** A container to be stopped. */
export interface ToldContainer {
  readonly id: ContainerId;
  readonly name: string;
  /** The text of its Event; default: that it is being stopped. */
  readonly eventMessage?: string;
}

/**
 * Reports that a container is being stopped, as upstream's Event Killing: before its preStop hook and before it waits
 * for its turn in the stop order, since either may take minutes. Retries for the same cause are reported once.
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
