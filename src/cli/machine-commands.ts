/** The commands that do more on the machine than to ask the engine, loaded as one. */
export { debugCommand } from "./debug.ts";
export { attachCommand, execCommand } from "./exec.ts";
export { logsCommand } from "./logs.ts";
export { openMachine } from "./machine-context.ts";
export { portForwardCommand } from "./port-forward.ts";
export { stopCommand } from "./stop.ts";
export { uiCommand } from "./ui.ts";
