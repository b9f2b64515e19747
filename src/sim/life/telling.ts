import type { Pod } from "../../api/pod.ts";
import type { Faults } from "./faults.ts";
import { differences, podDifferences, podText } from "./pod-text.ts";
import type { Stage } from "./stage.ts";

type Tell = (text: string, podUid?: string) => void;

/** A stage that reports all actions on pods. */
export function narratedStage(stage: Stage, tell: Tell): Stage {
  const { desired } = stage.node;
  return {
    ...stage,
    want: (pod) => {
      tell(`adds ${podText(pod)}`, pod.metadata.uid);
      stage.want(pod);
    },
    change: (pod) => {
      tell(changed(desired.get(pod.metadata.uid), pod), pod.metadata.uid);
      stage.change(pod);
    },
    unwant: (uid, graceSeconds) => {
      tell(`removes ${uid}${graceSeconds === undefined ? "" : `, grace ${graceSeconds} s`}`, uid);
      stage.unwant(uid, graceSeconds);
    },
  };
}

/** Reports changes of the desired state that no step reported. */
export function tellDesired(before: ReadonlyMap<string, Pod>, after: ReadonlyMap<string, Pod>, tell: Tell): void {
  for (const [uid, pod] of after) {
    const old = before.get(uid);
    if (old !== pod) tell(old === undefined ? `adds ${podText(pod)}` : changed(old, pod), uid);
  }
  for (const uid of before.keys()) if (!after.has(uid)) tell(`removes ${uid}`, uid);
}

/** Faults that begin or end here. */
export function faultsText(before: Faults, after: Faults): string {
  return `faults: ${differences("", before, after).join(", ") || "unchanged"}`;
}

function changed(before: Pod | undefined, after: Pod): string {
  const { name, uid } = after.metadata;
  const details = before === undefined ? [] : podDifferences(before, after);
  return `changes ${name} (${uid}): ${details.join(", ") || "nothing"}`;
}
