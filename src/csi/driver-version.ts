/** Upstream's rule for a plugin's versions: the highest below 2, which must have the major version 1. Pure. */
export function highestVersion(
  versions: readonly string[],
): { readonly version: string } | { readonly problem: string } {
  if (versions.length === 0) return { problem: "Plugin returned an empty list for supported versions" };
  const known = versions.flatMap((text) => {
    const parts = partsOf(text);
    return parts === undefined || (parts[0] ?? 0) > 1 ? [] : [{ text, parts }];
  });
  const [highest] = known.toSorted((a, b) => compareParts(b.parts, a.parts));
  const listed = `None of the versions specified [${versions.map((each) => JSON.stringify(each)).join(" ")}] are supported`;
  if (highest === undefined) return { problem: `${listed}. err=could not find a highest supported version` };
  if (highest.parts[0] === 1) return { version: highest.text };
  return { problem: `${listed}. err=highest supported version reported by plugin is ${highest.text}, must be v1.x` };
}

/** Negative: the first one is lower. Pure. */
export function compareVersions(a: string, b: string): number {
  return compareParts(partsOf(a) ?? [], partsOf(b) ?? []);
}

function partsOf(text: string): readonly number[] | undefined {
  const digits = /^\s*v?(\d+(?:\.\d+)+)/u.exec(text)?.[1];
  return digits?.split(".").map(Number);
}

function compareParts(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
