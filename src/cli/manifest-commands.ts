/** The commands that read manifests, and what leads to them, loaded as one. */
export { planCommand } from "./plan.ts";
export { runCommand } from "./run.ts";
export { welcome } from "./welcome.ts";
