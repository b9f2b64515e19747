/**
 * A capability's name in Kubernetes and CRI: `NET_ADMIN`. Runtimes prepend `CAP_`, and containerd does so even to a
 * name that already has it, which yields an unknown capability that is silently ignored.
 */
export function plainCapability(name: string): string {
  return name.replace(/^CAP_(?=.)/iu, "");
}
