import { podUid } from "../../base/ids.ts";
import { PodManifest, type Pod } from "../../api/pod.ts";
import type { Files } from "../../ports/files.ts";
import type { NodeContext } from "../node-context.ts";
import { podDirectory } from "./pod-directories.ts";

const fileName = "podwright-pod.json";
const maxBytes = 4 << 20;

/**
 * Writes a pod beside what it has on the node, before anything of it runs. Should podwright be killed while the pod is
 * being stopped, nobody wants it any more in the next life: its order of stopping and its grace are known from here.
 * @param by who writes: a start may do so beside the record of the pod, and neither takes the other's half
 */
export async function keepSpec(
  files: Files,
  node: Pick<NodeContext, "rootDirectory">,
  pod: Pod,
  by: "start" | "record" | "deletion",
): Promise<void> {
  const { metadata, spec } = pod;
  const text = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec });
  const path = pathOf(node, metadata.uid);
  const half = `${path}.${by}.tmp`;
  await files.write(half, text, 0o600);
  await files.rename(half, path);
}

/** The pod as it was kept; undefined when it was not, or not to its end. */
export async function keptSpec(
  files: Files,
  node: Pick<NodeContext, "rootDirectory">,
  uid: string,
): Promise<Pod | undefined> {
  try {
    const bytes = await files.read(pathOf(node, uid), maxBytes);
    const { metadata, spec } = PodManifest.parse(JSON.parse(new TextDecoder().decode(bytes)));
    const { name, namespace } = metadata;
    if (name === undefined || namespace === undefined || metadata.uid !== uid) return undefined;
    return { metadata: { ...metadata, name, namespace, uid: podUid(uid) }, spec };
  } catch {
    return undefined;
  }
}

/** Takes away what {@link keepSpec} kept. */
export async function dropSpec(files: Files, node: Pick<NodeContext, "rootDirectory">, uid: string): Promise<void> {
  await files.remove(pathOf(node, uid));
}

function pathOf(node: Pick<NodeContext, "rootDirectory">, uid: string): string {
  return `${podDirectory(node, uid)}/${fileName}`;
}
