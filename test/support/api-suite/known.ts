/** Steps in which the API server for tests intentionally differs from the real one, and why. The list is enforced. */
export const knownDifferences: ReadonlyMap<string, string> = new Map([
  ["a quantity", "it keeps quantities as they are written"],
  ["an apply patch", "it has no server-side apply"],
  ["a node is replaced under another UID", "the real one's words tell where in etcd the object is"],
  ["a node's status is patched in another order than it says", "the real one's words show the whole lists"],
  ["a node's status is patched with another type", "it refuses what a patch makes with 400, as any other object"],
  ["a node acts as somebody", "it knows no constrained impersonation, by which the real one refuses"],
  ["a node acts as an account", "it knows no constrained impersonation, by which the real one refuses"],
]);
