/** Commands that read manifests, and the welcome, loaded together. */
export { planCommand } from "./plan.ts";
export { runCommand } from "./run.ts";
export { welcome } from "./welcome.ts";
