const end = "']";

/**
 * Splits `metadata.labels['app']` into `metadata.labels` and `app`; undefined for a path without a subscript (upstream:
 * SplitMaybeSubscriptedPath). Pure.
 */
export function subscriptOf(fieldPath: string): { readonly path: string; readonly key: string } | undefined {
  const begin = fieldPath.indexOf("['");
  if (begin <= 0 || !fieldPath.endsWith(end) || begin + 2 > fieldPath.length - end.length) return undefined;
  return { path: fieldPath.slice(0, begin), key: fieldPath.slice(begin + 2, -end.length) };
}
