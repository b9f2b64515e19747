import { hostname } from "node:os";
import { freshPlan } from "../engine/fresh-plan.ts";
import { createLogger } from "../linux/processes/log-sink.ts";
import { systemRandom } from "../linux/processes/random.ts";
import type { ApplyRequest, Plan } from "../server/local-api.ts";
import { openKeptClaims } from "./kept-claims.ts";
import type { MachineContext } from "./machine-context.ts";

/** Plans the manifests for a node without pods on this machine. */
export async function planWithoutEngine(context: MachineContext, request: ApplyRequest): Promise<Plan> {
  const log = createLogger({ level: "warn" });
  const claims = await openKeptClaims(context);
  return freshPlan({ ...context, random: systemRandom, log, nodeName: hostname() }, claims, request);
}
