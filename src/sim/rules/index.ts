import { Agreement } from "./agreement.ts";
import { inCluster } from "./cluster.ts";
import { changedEvictions } from "./changed-evictions.ts";
import { changes } from "./changes.ts";
import { claims } from "./claims.ts";
import { Conditions } from "./conditions.ts";
import { collectedGarbage } from "./collected-garbage.ts";
import { collectedImages } from "./collected-images.ts";
import { containers } from "./containers.ts";
import { Corrections } from "./corrections.ts";
import { CutShort } from "./cut-short.ts";
import { dead } from "./dead.ts";
import { Deadlines } from "./deadlines.ts";
import { devices } from "./devices.ts";
import { drivers } from "./drivers.ts";
import { DriverWaits } from "./driver-waits.ts";
import { ephemeral } from "./ephemeral.ts";
import { Evictions } from "./evictions.ts";
import { finished } from "./finished.ts";
import { GarbageFirst } from "./garbage-first.ts";
import { history } from "./history.ts";
import { HookRules } from "./hooks.ts";
import { ImageOrder } from "./image-order.ts";
import { ImagePolicyRules } from "./image-policy.ts";
import { imageVolumes } from "./image-volumes.ts";
import { images } from "./images.ts";
import { init } from "./init.ts";
import { journal } from "./journal.ts";
import { pace } from "./pace.ts";
import { lastStates } from "./last-states.ts";
import { logs } from "./logs.ts";
import { machine } from "./machine.ts";
import { machineLooks } from "./machine-looks.ts";
import { made } from "./made.ts";
import { memoryQos } from "./memory-qos.ts";
import { messages } from "./messages.ts";
import { mirrorPods } from "./mirror-pods.ts";
import { names } from "./names.ts";
import { phases } from "./phases.ts";
import { ports } from "./ports.ts";
import { postStart } from "./post-start.ts";
import { Preemptions } from "./preemption.ts";
import { ProbeRules } from "./probes.ts";
import { probeTimeRules } from "./probe-times.ts";
import { quotas } from "./quotas.ts";
import { readiness } from "./readiness.ts";
import { reaction } from "./reaction.ts";
import { Resizes } from "./resizes.ts";
import { Restarts } from "./restarts.ts";
import type { RuleMaker } from "./rule.ts";
import { running } from "./running.ts";
import { Shutdowns } from "./shutdown.ts";
import { StartOrder } from "./start-order.ts";
import { StartOver } from "./start-over.ts";
import { StatusRules } from "./status.ts";
import { Stops } from "./stops.ts";
import { stopped } from "./stopped.ts";
import { userNamespaces } from "./user-namespaces.ts";
import { volumes } from "./volumes.ts";

/** What must never happen, whatever fails, and what must hold once nothing fails any more. */
export const rules: readonly RuleMaker[] = [
  containers,
  (scene, broken) => new StartOrder(scene, broken),
  made,
  (scene, broken) => new Restarts(scene, broken),
  init,
  ephemeral,
  (scene, broken) => new HookRules(scene, broken),
  postStart,
  (scene, broken) => new ProbeRules(scene, broken),
  probeTimeRules,
  (scene, broken) => new Stops(scene, broken),
  (scene, broken) => new StartOver(scene, broken),
  names,
  finished,
  stopped,
  dead,
  (scene, broken) => new Deadlines(scene, broken),
  images,
  imageVolumes,
  collectedImages,
  collectedGarbage,
  (scene, broken) => new ImagePolicyRules(scene, broken),
  (scene, broken) => new ImageOrder(scene, broken),
  volumes,
  claims,
  devices,
  drivers,
  (scene, broken) => new DriverWaits(scene, broken),
  userNamespaces,
  ports,
  (scene, broken) => new Resizes(scene, broken),
  (scene, broken) => new Preemptions(scene, broken),
  (scene, broken) => new Evictions(scene, broken),
  changedEvictions,
  quotas,
  (scene, broken) => new GarbageFirst(scene, broken),
  (scene, broken) => new Shutdowns(scene, broken),
  machine,
  machineLooks,
  memoryQos,
  history,
  (scene, broken) => new StatusRules(scene, broken),
  phases,
  (scene, broken) => new CutShort(scene, broken),
  (scene, broken) => new Conditions(scene, broken),
  journal,
  pace,
  inCluster,
  mirrorPods,
  readiness,
  reaction,
  changes,
  (scene, broken) => new Corrections(scene, broken),
  messages,
  logs,
  lastStates,
  running,
  (scene, broken) => new Agreement(scene, broken),
];
