import { Container } from "../api/container.ts";
import { PodSpec } from "../api/pod.ts";
import { quote, type FieldPath } from "../yaml/manifest-error.ts";
import type { FieldHint } from "./schema-errors.ts";

type Renamed = Readonly<Record<string, string>>;

const ofConfigMap: Renamed = { configMap: "name", configMapName: "name", secretName: "name" };
const ofSecret: Renamed = { configMapName: "name", secret: "name", secretName: "name" };

/** By the field around it: how a field is called there that has another name elsewhere, or in other programs. */
const names: Readonly<Record<string, Renamed>> = {
  "volumes.configMap": ofConfigMap,
  "volumes.emptyDir": { size: "sizeLimit", type: "medium" },
  "volumes.hostPath": { hostPath: "path", mountPath: "path", name: "path" },
  "volumes.persistentVolumeClaim": { name: "claimName", persistentVolumeClaimName: "claimName" },
  "volumes.secret": { name: "secretName" },
  "sources.configMap": ofConfigMap,
  "sources.secret": ofSecret,
  configMapKeyRef: ofConfigMap,
  configMapRef: ofConfigMap,
  secretKeyRef: ofSecret,
  secretRef: ofSecret,
  imagePullSecrets: ofSecret,
  volumes: { persistentVolume: "persistentVolumeClaim", pvc: "persistentVolumeClaim", host: "hostPath" },
  envFrom: {
    configMap: "configMapRef",
    configMapKeyRef: "configMapRef",
    secret: "secretRef",
    secretKeyRef: "secretRef",
  },
  "env.valueFrom": {
    configMap: "configMapKeyRef",
    configMapRef: "configMapKeyRef",
    field: "fieldRef",
    resourceField: "resourceFieldRef",
    secret: "secretKeyRef",
    secretRef: "secretKeyRef",
  },
  volumeMounts: {
    containerPath: "mountPath",
    path: "mountPath",
    propagation: "mountPropagation",
    target: "mountPath",
    volume: "name",
    volumeName: "name",
  },
  ports: { container: "containerPort", host: "hostPort", port: "containerPort", targetPort: "containerPort" },
  containers: {
    cmd: "command",
    entrypoint: "command",
    environment: "env",
    healthcheck: "livenessProbe",
    mounts: "volumeMounts",
    workdir: "workingDir",
  },
  probe: {
    initialDelay: "initialDelaySeconds",
    interval: "periodSeconds",
    period: "periodSeconds",
    retries: "failureThreshold",
    timeout: "timeoutSeconds",
  },
  spec: { nodeselector: "nodeSelector", gracePeriodSeconds: "terminationGracePeriodSeconds" },
};

/** By the field around it: below which other field the field goes. */
const places: Readonly<Record<string, Renamed>> = {
  containers: {
    allowPrivilegeEscalation: "securityContext",
    capabilities: "securityContext",
    limits: "resources",
    privileged: "securityContext",
    readOnlyRootFilesystem: "securityContext",
    requests: "resources",
    runAsUser: "securityContext",
  },
  env: {
    configMapKeyRef: "valueFrom",
    fieldRef: "valueFrom",
    resourceFieldRef: "valueFrom",
    secretKeyRef: "valueFrom",
  },
  probe: { command: "exec", host: "httpGet", path: "httpGet", port: "httpGet or tcpSocket", scheme: "httpGet" },
  resources: { cpu: "requests or limits", memory: "requests or limits", storage: "requests" },
  spec: {
    fsGroup: "securityContext",
    nameservers: "dnsConfig",
    runAsUser: "securityContext",
    sysctls: "securityContext",
  },
};

/** What the pod's securityContext has, and what each container's. */
const podsOwn = new Set([
  "fsGroup",
  "fsGroupChangePolicy",
  "supplementalGroups",
  "supplementalGroupsPolicy",
  "sysctls",
]);
const containersOwn = new Set([
  "allowPrivilegeEscalation",
  "capabilities",
  "privileged",
  "procMount",
  "readOnlyRootFilesystem",
]);
const ofControllers = new Set(["minReadySeconds", "replicas", "selector", "strategy", "template", "updateStrategy"]);
const probes = new Set(["livenessProbe", "readinessProbe", "startupProbe"]);
const containerLists = new Set(["containers", "initContainers", "ephemeralContainers"]);

/** What is most likely meant by a field that a pod does not have at a path. */
export function podFieldHint(path: FieldPath, field: string): ReturnType<FieldHint> {
  const around = path.filter((part) => typeof part === "string").map(generalName);
  for (const context of [around.slice(-2).join("."), around.at(-1) ?? ""]) {
    const name = own(names, context, field);
    if (name !== undefined) return { hint: `the field is ${quote(name)} here`, meant: name };
    const place = own(places, context, field);
    if (place !== undefined) return { hint: `it goes below ${place}` };
  }
  const hint = misplaced(around, field);
  return hint === undefined ? undefined : { hint };
}

function generalName(part: string): string {
  if (probes.has(part)) return "probe";
  return containerLists.has(part) ? "containers" : part;
}

/** An inherited name such as "constructor" is no field. */
function own(table: Readonly<Record<string, Renamed>>, context: string, field: string): string | undefined {
  const found = Object.hasOwn(table, context) ? table[context] : undefined;
  return found !== undefined && Object.hasOwn(found, field) ? found[field] : undefined;
}

/** What belongs to the pod stands in a container, or the other way round. */
function misplaced(around: readonly string[], field: string): string | undefined {
  const where = around.join(".");
  if (where === "" && Object.hasOwn(PodSpec.shape, field)) return "it goes below spec";
  if (where === "" && (field === "labels" || field === "annotations")) return "it goes below metadata";
  if (where === "spec" && ofControllers.has(field)) return "a field of controllers such as Deployments, not of pods";
  if (where === "spec" && Object.hasOwn(Container.shape, field)) return "it goes into each container";
  if (where === "spec.containers" && Object.hasOwn(PodSpec.shape, field)) {
    return "it goes below spec, not into a container";
  }
  if (where === "spec.securityContext" && containersOwn.has(field)) {
    return "it goes into the securityContext of each container";
  }
  if (where === "spec.containers.securityContext" && podsOwn.has(field)) return "it goes below spec.securityContext";
  return undefined;
}
