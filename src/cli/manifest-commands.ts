/** The commands that read manifests, loaded as one. */
export { planCommand } from "./plan.ts";
export { runCommand } from "./run.ts";
