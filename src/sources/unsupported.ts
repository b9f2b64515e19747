import { removedVolumeSources } from "../api/storage-manifest.ts";
import type { PodManifest } from "../api/pod.ts";
import type { FieldError } from "./field-errors.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";

/**
 * A field that this version does not honour. In the path `*` stands for every item of a list or key of a map.
 * `when` narrows it to some values; `last` is the last part of the path.
 */
interface UnsupportedField {
  readonly path: string;
  /** Completes "not supported: podwright …". */
  readonly because: string;
  readonly when?: (value: unknown, last: string | number) => boolean;
  /** Where it is not supported; undefined: everywhere. In a pod of an API server some fields mean something. */
  readonly only?: "manifest" | "api";
}

/** In a cluster these are volumes of CSI drivers. */
const hasSuccessor: ReadonlySet<string> = new Set([
  "awsElasticBlockStore",
  "azureDisk",
  "azureFile",
  "cinder",
  "gcePersistentDisk",
  "portworxVolume",
  "vsphereVolume",
]);

const isExtended = (_value: unknown, resource: string | number): boolean =>
  // A name without a domain is invalid, as validation reports.
  String(resource).includes("/");

const noDevices = "has no device plugins; in a cluster, extended resources can be added to the Node";
const noClasses = "needs an API server for RuntimeClasses (podwright kubelet --kubeconfig)";

/** Fields of every container, wherever the pod has containers. */
const ofContainers: readonly UnsupportedField[] = [
  { path: "resources.claims.*", because: "does not allocate devices yet" },
  { path: "resources.limits.*", because: noDevices, when: isExtended, only: "manifest" },
  { path: "resources.requests.*", because: noDevices, when: isExtended, only: "manifest" },
  { path: "securityContext.windowsOptions", because: "runs Linux containers" },
];

/** What this version does not do yet, so that nothing in a manifest is silently ignored. Later work shortens it. */
const unsupported: readonly UnsupportedField[] = [
  {
    path: "metadata.deletionTimestamp",
    because: "stops a pod when its manifest is removed; remove the field",
    only: "manifest",
  },
  ...["iscsi", "fc", "flexVolume"].map((type) => ({
    path: `spec.volumes.*.${type}`,
    because: "does not mount volumes of this kind; use a CSI driver",
  })),
  {
    path: "spec.volumes.*.gitRepo",
    because: "rejects gitRepo volumes, as Kubernetes does; clone in an init container",
  },
  ...removedVolumeSources.map((type) => ({
    path: `spec.volumes.*.${type}`,
    because: "has no in-tree drivers of storage vendors; use CSI",
    ...(hasSuccessor.has(type) && ({ only: "manifest" } as const)),
  })),
  {
    path: "spec.volumes.*.projected.sources.*.serviceAccountToken",
    because: "needs an API server for it (podwright kubelet --kubeconfig)",
    only: "manifest",
  },
  ...["clusterTrustBundle", "podCertificate"].map((source) => ({
    path: `spec.volumes.*.projected.sources.*.${source}`,
    because: "does not request it from the API server yet",
  })),
  ...["spec.runtimeClassName", "spec.overhead.*"].map(
    (path) => ({ path, because: noClasses, only: "manifest" }) as const,
  ),
  { path: "spec.resourceClaims.*", because: "does not allocate devices yet" },
  // The claim that a scheduler made for the pod's extended resources.
  {
    path: "status.extendedResourceClaimStatus",
    because: "does not allocate devices yet",
    when: (value) => value !== null,
    only: "api",
  },
  // Pods of an API server are rejected with their own reason.
  { path: "spec.os.name", because: "runs Linux containers", when: (value) => value !== "linux", only: "manifest" },
  { path: "spec.securityContext.windowsOptions", because: "runs Linux containers" },
  ...["containers", "initContainers", "ephemeralContainers"].flatMap((kind) => {
    return ofContainers.map((field) => ({ ...field, path: `spec.${kind}.*.${field.path}` }));
  }),
];

/** The fields by the parts of their paths: a pod is walked once, and only where it has something. */
interface Branch {
  readonly below: Map<string, Branch>;
  readonly fields: { readonly rank: number; readonly field: UnsupportedField }[];
}

const tree = growTree();

function growTree(): Branch {
  const root: Branch = { below: new Map(), fields: [] };
  for (const [rank, field] of unsupported.entries()) {
    let branch = root;
    for (const part of field.path.split(".")) {
      const next = branch.below.get(part) ?? { below: new Map(), fields: [] };
      branch.below.set(part, next);
      branch = next;
    }
    branch.fields.push({ rank, field });
  }
  return root;
}

/**
 * The fields of a pod that this version does not support, in the order of the table. Expects the manifest as written,
 * because defaults are not requests.
 */
export function findUnsupported(pod: PodManifest, from: "manifest" | "api" = "manifest"): FieldError[] {
  const found: { readonly rank: number; readonly error: FieldError }[] = [];
  walk(pod, tree, [], (path, value, branch) => {
    for (const { rank, field } of branch.fields) {
      const { because, when, only = from } = field;
      if (only !== from) continue;
      if (when !== undefined && !when(value, path.at(-1) ?? "")) continue;
      found.push({ rank, error: { path: [...path], detail: `not supported: podwright ${because}` } });
    }
  });
  return found.toSorted((a, b) => a.rank - b.rank).map(({ error }) => error);
}

type Found = (path: FieldPath, value: unknown, branch: Branch) => void;

/** @param path of the value; it is changed on the way and is what it was afterwards */
function walk(value: unknown, branch: Branch, path: (string | number)[], found: Found): void {
  if (value === undefined) return;
  if (branch.fields.length > 0) found(path, value, branch);
  const step = (key: string | number, item: unknown, next: Branch): void => {
    path.push(key);
    walk(item, next, path, found);
    path.pop();
  };
  for (const [part, next] of branch.below) {
    if (Array.isArray(value)) {
      if (part === "*") for (let index = 0; index < value.length; index++) step(index, value[index], next);
    } else if (typeof value === "object" && value !== null) {
      if (part !== "*") {
        if (Object.hasOwn(value, part)) step(part, Reflect.get(value, part), next);
      } else {
        for (const key of Object.keys(value)) step(key, Reflect.get(value, key), next);
      }
    }
  }
}
