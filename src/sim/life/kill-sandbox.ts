import type { Act } from "./stage.ts";

/** One of the sandboxes that run is lost, with its containers. */
export const killSandbox: Act = (stage, random) => {
  const sandboxes = [...stage.world.sandboxes.values()].filter(({ ready }) => ready);
  const sandbox = sandboxes[random.integer(0, sandboxes.length - 1)];
  if (sandbox === undefined) return;
  stage.strike("sandbox killed");
  stage.world.stopSandbox(sandbox.id);
};
