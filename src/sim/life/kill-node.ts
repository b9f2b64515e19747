import type { Stage } from "./stage.ts";

/** podwright is killed after a while, unless it is down or the faults are over, and starts again a second later. */
export function killNodeLater({ clock, faults, node, strike }: Stage, reason: string, afterMs: number): void {
  clock.schedule(reason, afterMs, () => {
    if (faults.hasEnded || !node.isUp) return;
    strike("podwright killed");
    node.kill();
    clock.schedule("podwright to be started again", 1000, () => node.start());
  });
}
