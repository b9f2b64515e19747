import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import type { ApplyRequest, Plan } from "../server/local-api.ts";
import { RunSource } from "../sources/run-source.ts";
import type { RunStorage } from "../sources/run-storage.ts";
import { planPods } from "./plan-pods.ts";

export interface FreshPlanDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly random: Random;
  readonly log: Logger;
  readonly nodeName: string;
}

/**
 * What a node without pods would do with the manifests. Writes nothing.
 * @param storage the claims that there are
 * @throws PodwrightError (bad input) for manifests that a node would reject
 */
export function freshPlan(deps: FreshPlanDependencies, storage: RunStorage, request: ApplyRequest): Plan {
  const source = new RunSource(
    {
      ...deps,
      storage,
      journal: { record: () => 0 },
      deliver: () => {},
      objectsChanged: () => {},
      hasEnded: () => false,
    },
    { directory: "/nowhere" },
  );
  const preview = source.preview(request);
  return { pods: planPods([], preview, [], 0), objects: preview.objects };
}
