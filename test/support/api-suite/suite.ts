import { playAccess } from "./access.ts";
import { playNodes } from "./nodes.ts";
import { playPodChanges } from "./pod-changes.ts";
import { playPodEnds } from "./pod-ends.ts";
import { playPodSpecs } from "./pod-specs.ts";
import { playPods } from "./pods.ts";
import type { Scene, Steps } from "./scene.ts";
import { playWatches } from "./watches.ts";

/** The whole suite in order: later steps build on earlier ones. */
export async function play(scene: Scene): Promise<void> {
  const steps: Steps = {
    step: scene.step.bind(scene),
    ask: scene.ask.bind(scene),
    watch: scene.watch.bind(scene),
  };
  const { ask } = steps;
  for (const what of ["serviceaccounts/default", "configmaps/kube-root-ca.crt"]) {
    await ask("admin", `GET /api/v1/namespaces/default/${what}`, undefined, { until: ({ code }) => code === 200 });
  }
  await playNodes(steps);
  await playPods(steps);
  await playPodChanges(steps);
  await playPodSpecs(steps);
  await playPodEnds(steps);
  await playWatches(steps);
  await playAccess(steps);
}
