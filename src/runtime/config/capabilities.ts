/**
 * A capability's name as Kubernetes and the CRI have it: `NET_ADMIN`. Runtimes put `CAP_` before it, and containerd does
 * so to a name that begins with it already: such a capability is then none that the kernel knows, and left out in silence.
 */
export function plainCapability(name: string): string {
  return name.replace(/^CAP_(?=.)/iu, "");
}
