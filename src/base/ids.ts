declare const brand: unique symbol;
type Branded<B extends string> = string & { readonly [brand]: B };

/** `metadata.uid` of a pod: the key of everything the node knows about it. */
export type PodUid = Branded<"PodUid">;
/** The runtime's id of a container, without the `containerd://` prefix. */
export type ContainerId = Branded<"ContainerId">;
/** The runtime's id of a pod sandbox. */
export type SandboxId = Branded<"SandboxId">;

export const podUid = (text: string): PodUid => text as PodUid;
export const containerId = (text: string): ContainerId => text as ContainerId;
export const sandboxId = (text: string): SandboxId => text as SandboxId;

const uid = "[0-9a-f]{32}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}";
const uidForm = new RegExp(`^(?:${uid})$`, "u");
const uidWithin = new RegExp(uid, "u");

/** Whether it is a name around a UID of such a form. Pure. */
export function isNamedAfterUid(name: string): boolean {
  return uidWithin.test(name) && !hasUidForm(name);
}

/** Whether it has the form of a UID that an API server or a kubelet gives; a manifest may name any other. Pure. */
export function hasUidForm(name: string): boolean {
  return uidForm.test(name);
}
