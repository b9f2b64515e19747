import { podUid } from "../base/ids.ts";
import { containersOf } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod, PodManifest } from "../api/pod.ts";
import { fnv128a } from "../base/fnv.ts";
import { containerHash } from "../runtime/config/hash.ts";
import { Annotation } from "../runtime/config/labels.ts";
import type { ContainerStatus } from "../runtime/status/pod-status.ts";
import { canonicalJson } from "./canonical-json.ts";
import { forbidden, required, type FieldError } from "./field-errors.ts";
import { nameTooLong } from "./validate-metadata.ts";

/** Where a static pod comes from: the path of its file, or the URL. */
export type StaticSource =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "http"; readonly url: string };

/**
 * The static pod that a manifest (with defaults) stands for on this node, as upstream's applyDefaults makes it: the
 * name with the node's appended, namespace, node name, UID, annotation config.hash and, from files, the toleration
 * of every NoExecute taint.
 */
export function staticPod(manifest: PodManifest, nodeName: string, source: StaticSource): Pod {
  const uid = manifest.metadata.uid || staticPodUid(manifest, nodeName, source);
  return {
    metadata: {
      ...manifest.metadata,
      name: `${manifest.metadata.name ?? ""}-${nodeName.toLowerCase()}`,
      namespace: manifest.metadata.namespace || "default",
      uid: podUid(uid),
      annotations: { ...manifest.metadata.annotations, [Annotation.configHash]: uid },
    },
    spec: {
      ...manifest.spec,
      nodeName,
      ...(source.kind === "file" && { tolerations: withNoExecuteToleration(manifest.spec.tolerations ?? []) }),
    },
  };
}

type Toleration = NonNullable<PodManifest["spec"]["tolerations"]>[number];

const ofEveryNoExecute: Toleration = { operator: "Exists", effect: "NoExecute" };

/** In the place of the pod's own one, which may be limited in time. */
function withNoExecuteToleration(tolerations: readonly Toleration[]): Toleration[] {
  const isIt = ({ key, operator, effect, value }: Toleration): boolean =>
    !key && operator === "Exists" && effect === "NoExecute" && !value;
  if (!tolerations.some(isIt)) return [...tolerations, ofEveryNoExecute];
  return tolerations.map((each) => (isIt(each) ? ofEveryNoExecute : each));
}

/**
 * A UID from the content and the place of a manifest: the same manifest in the same place on the same node has the
 * same UID after a restart, and any other has another. FNV-128a in hex, as upstream's, but over canonical JSON rather
 * than a dump of Go's structures: see docs/compatibility.md, "Static pod UIDs".
 */
export function staticPodUid(manifest: PodManifest, nodeName: string, source: StaticSource): string {
  const { metadata, spec } = manifest;
  const place = source.kind === "file" ? `host:${nodeName}file:${source.path}` : `url:${source.url}`;
  const hash = fnv128a(canonicalJson({ metadata, spec }) + place);
  return hash.toString(16).padStart(32, "0");
}

/**
 * True when the runtime's containers of a pod match its spec, by name and hash: such a sandbox of the same full name
 * can be adopted under its own UID instead of being replaced.
 * @param status its containers, newest first
 */
export function matchesRunning(
  pod: Pod,
  status: { readonly containers: readonly Pick<ContainerStatus, "name" | "hash">[] },
): boolean {
  const newest = new Map<string, string>();
  for (const container of status.containers) {
    if (!newest.has(container.name)) newest.set(container.name, container.hash);
  }
  const wanted = containersOf(pod.spec);
  const hashes = new Map(wanted.map((container) => [container.name, containerHash(container)]));
  const allKnown = [...newest].every(([name, hash]) => hashes.get(name) === hash);
  return newest.size > 0 && allKnown && pod.spec.containers.every((container) => newest.has(container.name));
}

/** Volumes that can't do without the API server. */
const apiVolumes: ReadonlySet<string> = new Set([
  "configMap",
  "secret",
  "csi",
  "persistentVolumeClaim",
  "ephemeral",
  "azureFile",
  "glusterfs",
]);
const apiProjections = ["configMap", "secret", "serviceAccountToken", "clusterTrustBundle", "podCertificate"] as const;

/** As long as those that {@link staticPodUid} makes. */
const anyUid = "0".repeat(32);

/**
 * What a static pod may not have: references to API objects (PreventStaticPodAPIReferences), since it runs without
 * an API server, a name that is too long with the node's behind it, and containers that are added while it runs: a
 * changed manifest is another pod.
 */
export function validateStaticPod(manifest: PodManifest, nodeName: string): FieldError[] {
  const ephemeral = manifest.spec.ephemeralContainers?.[0] !== undefined;
  return [
    ...apiReferences(manifest),
    ...nameTooLong({ ...manifest.metadata, uid: manifest.metadata.uid || anyUid }, `-${nodeName}`),
    ...(ephemeral
      ? [forbidden(["spec", "ephemeralContainers"], "static pods do not support ephemeral containers")]
      : []),
  ];
}

function* apiReferences(manifest: PodManifest): Iterable<FieldError> {
  const { spec } = manifest;
  const refuse = (path: (string | number)[], what: string): FieldError => {
    return forbidden(["spec", ...path], `static pods may not reference ${what}`);
  };
  if (spec.serviceAccountName) yield refuse(["serviceAccountName"], "serviceaccounts");
  if (spec.imagePullSecrets?.some(({ name }) => name) === true) yield refuse(["imagePullSecrets"], "secrets");
  if (spec.resourceClaims?.[0] !== undefined) yield refuse(["resourceClaims"], "resourceclaims");
  for (const kind of ["initContainers", "containers", "ephemeralContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      for (const { path, what } of environmentReferences(container)) yield refuse([kind, index, ...path], what);
    }
  }
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    for (const [type, source] of Object.entries(volume)) {
      if (apiVolumes.has(type)) yield refuse(["volumes", index, type], `${type} volumes`);
      else if (typeof source === "object" && "secretRef" in source) {
        yield refuse(["volumes", index, type, "secretRef"], "secrets");
      }
    }
    for (const [position, source] of (volume.projected?.sources ?? []).entries()) {
      if (Object.keys(source).length === 0) {
        yield required(["spec", "volumes", index, "projected", "sources", position], "must specify what it projects");
      }
      for (const type of apiProjections) {
        const path = ["volumes", index, "projected", "sources", position, type];
        if (source[type] !== undefined) yield refuse(path, `${type} projections`);
      }
    }
  }
}

function* environmentReferences(container: Container): Iterable<{ path: (string | number)[]; what: string }> {
  for (const [index, source] of (container.envFrom ?? []).entries()) {
    if (source.configMapRef) yield { path: ["envFrom", index, "configMapRef"], what: "configmaps" };
    if (source.secretRef) yield { path: ["envFrom", index, "secretRef"], what: "secrets" };
  }
  for (const [index, { valueFrom }] of (container.env ?? []).entries()) {
    if (valueFrom?.configMapKeyRef) yield { path: ["env", index, "valueFrom", "configMapKeyRef"], what: "configmaps" };
    if (valueFrom?.secretKeyRef) yield { path: ["env", index, "valueFrom", "secretKeyRef"], what: "secrets" };
  }
}
