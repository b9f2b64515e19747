import type { RunClaims } from "../claims/run-claims.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import type { ApplyRequest, Plan } from "../server/local-api.ts";
import { RunSource } from "../sources/run-source.ts";
import type { RunStorage } from "../sources/run-storage.ts";
import { planPods } from "./plan-pods.ts";
import { volumePlans } from "./plan-volumes.ts";

export interface FreshPlanDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly random: Random;
  readonly log: Logger;
  readonly nodeName: string;
}

type FreshStorage = RunStorage & Pick<RunClaims, "freeVolumes" | "views">;

/**
 * What a node without pods would do with the manifests. Writes nothing.
 * @param storage the claims that there are
 * @throws PodwrightError (bad input) for manifests that a node would reject
 */
export function freshPlan(deps: FreshPlanDependencies, storage: FreshStorage, request: ApplyRequest): Plan {
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
  const known = { claims: storage.views(), freeVolumes: storage.freeVolumes() };
  const volumes = volumePlans({
    storage: { ...known, given: request.storage ?? [], objects: preview.objects },
    ...{ views: [], pods: new Map(), entries: () => [], now: 0 },
  });
  return { pods: planPods([], preview, [], 0, volumes), objects: preview.objects };
}
