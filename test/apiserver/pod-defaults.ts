import { at, type Draft, draftAt, draftIn, draftsAt, type Fields, isFields, itemsAt, textAt } from "./objects.ts";

function completeProbe(probe: Draft): void {
  probe["timeoutSeconds"] ??= 1;
  probe["periodSeconds"] ??= 10;
  probe["successThreshold"] ??= 1;
  probe["failureThreshold"] ??= 3;
  completeHttpGet(probe);
}

function completeHttpGet(handler: Draft): void {
  const get = draftIn(handler, "httpGet");
  if (get === undefined) return;
  get["path"] ??= "/";
  get["scheme"] ??= "HTTP";
}

/** The default request is the limit (defaults of v1.ResourceRequirements). */
function completeResources(resources: Draft): void {
  const limits = resources["limits"];
  if (!isFields(limits)) return;
  const requests = draftAt(resources, "requests");
  for (const [name, amount] of Object.entries(limits)) requests[name] ??= amount;
}

function pullPolicy(image: string): string {
  const name = image.split("/").at(-1) ?? "";
  if (name.includes("@")) return "IfNotPresent";
  const tag = name.split(":")[1] ?? "latest";
  return tag === "latest" ? "Always" : "IfNotPresent";
}

/** The defaults of a container of any kind. */
export function completeContainer(container: Draft): void {
  container["terminationMessagePath"] ??= "/dev/termination-log";
  container["terminationMessagePolicy"] ??= "File";
  container["imagePullPolicy"] ??= pullPolicy(textAt(container, "image"));
  completeResources(draftAt(container, "resources"));
  for (const port of draftsAt(container, "ports")) port["protocol"] ??= "TCP";
  for (const variable of itemsAt(container, "env")) {
    const reference = draftIn(variable, "valueFrom.fieldRef");
    if (reference !== undefined) reference["apiVersion"] ??= "v1";
  }
  for (const name of ["livenessProbe", "readinessProbe", "startupProbe"]) {
    const probe = draftIn(container, name);
    if (probe !== undefined) completeProbe(probe);
  }
  for (const name of ["postStart", "preStop"]) {
    const hook = draftIn(container, `lifecycle.${name}`);
    if (hook !== undefined) completeHttpGet(hook);
  }
}

const modes = 0o644;

function completeVolume(volume: Draft): void {
  for (const kind of ["secret", "configMap", "downwardAPI", "projected"]) {
    const source = draftIn(volume, kind);
    if (source !== undefined) source["defaultMode"] ??= modes;
  }
  const hostPath = draftIn(volume, "hostPath");
  if (hostPath !== undefined) hostPath["type"] ??= "";
  for (const source of itemsAt(volume, "projected.sources")) {
    const token = draftIn(source, "serviceAccountToken");
    if (token !== undefined) token["expirationSeconds"] ??= 3600;
  }
  const image = draftIn(volume, "image");
  if (image !== undefined) image["pullPolicy"] ??= pullPolicy(textAt(image, "reference"));
  if (Object.keys(volume).length === 1) volume["emptyDir"] = {};
}

/** QoS class by the resources of all containers; quantities are compared as texts. */
export function qosClass(pod: Fields): string {
  const containers = [...itemsAt(pod, "spec.containers"), ...itemsAt(pod, "spec.initContainers")];
  const amounts = (container: Fields, name: string): string => {
    const [requested, limit] = [at(container, `resources.requests.${name}`), at(container, `resources.limits.${name}`)];
    if (requested === undefined && limit === undefined) return "none";
    return requested === limit ? "same" : "other";
  };
  const kinds = containers.flatMap((each) => ["cpu", "memory"].map((name) => amounts(each, name)));
  if (kinds.every((kind) => kind === "none")) return "BestEffort";
  return kinds.every((kind) => kind === "same") ? "Guaranteed" : "Burstable";
}

/** Default tolerations for nodes that are not ready (DefaultTolerationSeconds). */
export function completeTolerations(spec: Draft): void {
  const tolerations = [...itemsAt(spec, "tolerations")];
  for (const condition of ["not-ready", "unreachable"]) {
    const key = `node.kubernetes.io/${condition}`;
    const covered = tolerations.some(
      (each) => (each["key"] === key || each["key"] === undefined) && (each["effect"] ?? "NoExecute") === "NoExecute",
    );
    if (!covered) tolerations.push({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 });
  }
  spec["tolerations"] = tolerations;
}

/** The defaults of a new pod (k8s.io/kubernetes/pkg/apis/core/v1 and the DefaultTolerationSeconds admission). */
export function completePod(pod: Draft): void {
  const spec = draftAt(pod, "spec");
  if (textAt(spec, "restartPolicy") === "") spec["restartPolicy"] = "Always";
  spec["dnsPolicy"] ??= "ClusterFirst";
  spec["terminationGracePeriodSeconds"] ??= 30;
  spec["schedulerName"] ??= "default-scheduler";
  spec["enableServiceLinks"] ??= true;
  spec["preemptionPolicy"] ??= "PreemptLowerPriority";
  spec["priority"] ??= systemPriorities[textAt(spec, "priorityClassName")] ?? 0;
  draftAt(spec, "securityContext");
  if (spec["serviceAccountName"] !== undefined) spec["serviceAccount"] = spec["serviceAccountName"];
  for (const list of ["initContainers", "containers"]) {
    for (const container of draftsAt(spec, list)) completeContainer(container);
  }
  for (const volume of draftsAt(spec, "volumes")) completeVolume(volume);
  completeTolerations(spec);
  pod["status"] = { phase: "Pending", qosClass: qosClass(pod) };
}

const systemPriorities: Readonly<Record<string, number>> = {
  "system-node-critical": 2_000_001_000,
  "system-cluster-critical": 2_000_000_000,
};
