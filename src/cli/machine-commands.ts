/** Commands that use more of the machine than the engine's socket, loaded together. */
export { debugCommand } from "./debug.ts";
export { attachCommand, execCommand } from "./exec.ts";
export { logsCommand } from "./logs.ts";
export { openMachine } from "./machine-context.ts";
export { portForwardCommand } from "./port-forward.ts";
export { stopCommand } from "./stop.ts";
export { uiCommand } from "./ui.ts";
