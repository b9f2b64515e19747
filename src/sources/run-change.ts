import type { EphemeralContainer } from "../api/container.ts";
import type { Pod, PodManifest } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import { resizeProblems, sameResources, withoutResizable } from "../resources/resizable.ts";
import type { AppliedPod } from "../server/local-api.ts";
import { canonicalJson } from "./canonical-json.ts";
import { withDefaults } from "./defaults.ts";
import { forbidden, type FieldError } from "./field-errors.ts";

/** A stored pod: the manifest without defaults and with its UID. */
export type RunPod = PodManifest & { readonly metadata: { readonly name: string; readonly uid: PodUid } };

/**
 * The effect of a manifest on the stored pod of its name. Ephemeral containers are added to the running pod, as through
 * the API's subresource; a manifest without any leaves existing ones. Changed cpu and memory resize the running pod
 * (KEP-1287), with other mutable fields. A manifest with the pod's UID changes that pod, any other content is another
 * pod.
 */
export function podChange(kept: RunPod, manifest: PodManifest): AppliedPod["change"] {
  const { uid } = manifest.metadata;
  if (uid && uid !== kept.metadata.uid) return "replaced";
  if (contentOf(kept) !== contentOf(manifest)) return uid ? "updated" : "replaced";
  if (!sameResources(asPod(kept), asPod(manifest))) return "updated";
  const wanted = manifest.spec.ephemeralContainers ?? [];
  const had = kept.spec.ephemeralContainers ?? [];
  return wanted.length === 0 || canonicalJson(wanted) === canonicalJson(had) ? "unchanged" : "updated";
}

/** Why a pod update is not possible. */
export function updateProblems(kept: RunPod, manifest: PodManifest): FieldError[] {
  return [...ephemeralProblems(kept, manifest), ...resourceProblems(kept, manifest)];
}

function resourceProblems(kept: RunPod, manifest: PodManifest): FieldError[] {
  return resizeProblems(asPod(kept), asPod(manifest)).map(({ path, detail }) => {
    return forbidden(path, `${detail}; stop the pod first to run it with other resources`);
  });
}

/** Ephemeral containers that were added stay as they are. */
function ephemeralProblems(kept: RunPod, manifest: PodManifest): FieldError[] {
  const path = ["spec", "ephemeralContainers"];
  const wanted = new Map((manifest.spec.ephemeralContainers ?? []).map((container) => [container.name, container]));
  return (kept.spec.ephemeralContainers ?? []).flatMap((before: EphemeralContainer) => {
    const after = wanted.get(before.name);
    const index = manifest.spec.ephemeralContainers?.findIndex(({ name }) => name === before.name) ?? -1;
    if (after === undefined) {
      return wanted.size === 0
        ? []
        : [forbidden(path, `existing ephemeral container "${before.name}" may not be removed`)];
    }
    if (canonicalJson(after) === canonicalJson(before)) return [];
    return [forbidden([...path, index], `existing ephemeral container "${before.name}" may not be changed`)];
  });
}

/** The pod after an update: the manifest's content under the UID, with the ephemeral containers that it has. */
export function updated(kept: RunPod, manifest: PodManifest): RunPod {
  const { name, uid } = kept.metadata;
  const { ephemeralContainers = kept.spec.ephemeralContainers, ...spec } = manifest.spec;
  return {
    ...manifest,
    metadata: { ...manifest.metadata, name, namespace: kept.metadata.namespace ?? "default", uid },
    spec: { ...spec, ...(ephemeralContainers && { ephemeralContainers }) },
  };
}

/** Everything but the ephemeral containers, cpu and memory, and a UID that podwright chose. */
function contentOf({ metadata, spec }: PodManifest): string {
  const { ephemeralContainers: _, ...rest } = spec;
  const names = { ...metadata, namespace: metadata.namespace || "default", uid: "" };
  return canonicalJson({ metadata: names, spec: withoutResizable(rest) });
}

/** Requests that are not written are those that the defaults make of the limits. */
function asPod(manifest: PodManifest): Pick<Pod, "spec"> {
  return { spec: withDefaults(manifest).spec };
}
