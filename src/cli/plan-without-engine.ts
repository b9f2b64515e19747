import { hostname } from "node:os";
import { freshPlan } from "../engine/fresh-plan.ts";
import { createLogger } from "../linux/processes/log-sink.ts";
import { systemRandom } from "../linux/processes/random.ts";
import type { ApplyRequest, Plan } from "../server/local-api.ts";
import type { MachineContext } from "./machine-context.ts";

/** What a node of this machine that has no pods would do with the manifests. */
export function planWithoutEngine(context: MachineContext, request: ApplyRequest): Plan {
  const log = createLogger({ level: "warn" });
  return freshPlan({ ...context, random: systemRandom, log, nodeName: hostname() }, request);
}
