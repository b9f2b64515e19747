/** Commands that only query the engine, loaded together: each further file costs them a millisecond or two. */
export { blameCommand } from "./blame.ts";
export { openContext } from "./context.ts";
export { evictCommand } from "./evict.ts";
export { gcCommand } from "./gc.ts";
export { psCommand } from "./ps.ts";
export { retryCommand } from "./retry.ts";
export { timelineCommand } from "./timeline.ts";
export { versionCommand } from "./version.ts";
export { whyCommand } from "./why.ts";
