import { type PodUid, podUid } from "../../base/ids.ts";
import { PodManifest, type Pod } from "../../api/pod.ts";
import type { Files } from "../../ports/files.ts";
import type { NodeContext } from "../node-context.ts";
import { podDirectory } from "./pod-directories.ts";

const fileName = "podwright-pod.json";
const maxBytes = 4 << 20;

/**
 * Stores a pod before anything of it runs. If podwright is killed while an orphaned pod is being stopped, the next run
 * knows its stop order and grace period from here.
 * @param by the writer: a start may write beside the pod's checkpoint, and neither may take the other's temporary file
 */
export async function keepSpec(
  files: Pick<Files, "rename" | "write">,
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

/** The stored pod; undefined when missing or incomplete. */
export async function keptSpec(
  files: Pick<Files, "read">,
  node: Pick<NodeContext, "rootDirectory">,
  uid: PodUid,
): Promise<Pod | undefined> {
  const stored = await storedAt(files, node, uid);
  if (stored === undefined) return undefined;
  const { metadata, spec } = stored;
  const { name, namespace } = metadata;
  if (name === undefined || namespace === undefined || metadata.uid !== uid) return undefined;
  return { metadata: { ...metadata, name, namespace, uid: podUid(uid) }, spec };
}

/** The UID of the stored pod, which is another's in a copy of its directory; undefined when missing or incomplete. */
export async function keptUid(
  files: Pick<Files, "read">,
  node: Pick<NodeContext, "rootDirectory">,
  uid: PodUid,
): Promise<string | undefined> {
  return (await storedAt(files, node, uid))?.metadata.uid;
}

async function storedAt(
  files: Pick<Files, "read">,
  node: Pick<NodeContext, "rootDirectory">,
  uid: PodUid,
): Promise<PodManifest | undefined> {
  try {
    const bytes = await files.read(pathOf(node, uid), maxBytes);
    return PodManifest.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return undefined;
  }
}

/** Removes what {@link keepSpec} stored. */
export async function dropSpec(
  files: Pick<Files, "remove">,
  node: Pick<NodeContext, "rootDirectory">,
  uid: PodUid,
): Promise<void> {
  await files.remove(pathOf(node, uid));
}

function pathOf(node: Pick<NodeContext, "rootDirectory">, uid: PodUid): string {
  return `${podDirectory(node, uid)}/${fileName}`;
}
