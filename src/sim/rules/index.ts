import { Agreement } from "./agreement.ts";
import { containers } from "./containers.ts";
import { history } from "./history.ts";
import { HookRules } from "./hooks.ts";
import { images } from "./images.ts";
import { init } from "./init.ts";
import { journal } from "./journal.ts";
import { ports } from "./ports.ts";
import { ProbeRules } from "./probes.ts";
import { resizes } from "./resizes.ts";
import { Restarts } from "./restarts.ts";
import type { RuleMaker } from "./rule.ts";
import { StatusRules } from "./status.ts";
import { userNamespaces } from "./user-namespaces.ts";
import { volumes } from "./volumes.ts";

/** What may never be, whatever goes wrong, and what has to be when nothing goes wrong any more. */
export const rules: readonly RuleMaker[] = [
  containers,
  (scene, broken) => new Restarts(scene, broken),
  init,
  (scene, broken) => new HookRules(scene, broken),
  (scene, broken) => new ProbeRules(scene, broken),
  images,
  volumes,
  userNamespaces,
  ports,
  resizes,
  history,
  (scene, broken) => new StatusRules(scene, broken),
  journal,
  (scene, broken) => new Agreement(scene, broken),
];
