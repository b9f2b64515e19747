/** A pod's name on its node: whatever its UID, only one of a name runs at a time. */
export function fullName({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}
