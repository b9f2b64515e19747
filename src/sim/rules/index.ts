import { agreement } from "./agreement.ts";
import { containers } from "./containers.ts";
import { history } from "./history.ts";
import { hooks } from "./hooks.ts";
import { images } from "./images.ts";
import { init } from "./init.ts";
import { journal } from "./journal.ts";
import { ports } from "./ports.ts";
import { probes } from "./probes.ts";
import { resizes } from "./resizes.ts";
import { restarts } from "./restarts.ts";
import type { RuleMaker } from "./rule.ts";
import { status } from "./status.ts";
import { userNamespaces } from "./user-namespaces.ts";
import { volumes } from "./volumes.ts";

/** What may never be, whatever goes wrong, and what has to be when nothing goes wrong any more. */
export const rules: readonly RuleMaker[] = [
  containers,
  restarts,
  init,
  hooks,
  probes,
  images,
  volumes,
  userNamespaces,
  ports,
  resizes,
  history,
  status,
  journal,
  agreement,
];
