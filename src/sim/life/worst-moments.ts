import type { SimRandom } from "../random.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import type { Faults } from "./faults.ts";

const soonMs = 60;

/** Makes containers exit at the worst moments: just after their start, during a stop, under a hook. */
export function playWorstMoments(
  world: RuntimeWorld,
  random: SimRandom,
  faults: () => Faults,
  strike: (fault: string) => void,
): void {
  world.onChange(({ type, container }) => {
    const { worstMoments } = faults();
    if (worstMoments === 0 || container === undefined) return;
    if (type !== "started" && type !== "stopping" && type !== "hook") return;
    if (!random.chance(worstMoments)) return;
    const exitCode = random.pick([0, 1, 137]);
    world.clock.schedule(`the worst moment of ${container.id}`, random.uniform() * soonMs, () => {
      if (container.state !== "running") return;
      strike("container ends at the worst moment");
      world.exit(container, exitCode, exitCode === 0 ? "Completed" : "Error");
    });
  });
}
