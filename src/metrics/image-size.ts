const mebi = 1024 * 1024;
const gibi = 1024 * mebi;

/** Upper bounds with upstream's names for what lies below them. */
const ranges: readonly (readonly [number, string])[] = [
  [10 * mebi, "0-10MB"],
  [100 * mebi, "10MB-100MB"],
  [500 * mebi, "100MB-500MB"],
  [gibi, "500MB-1GB"],
  [5 * gibi, "1GB-5GB"],
  [10 * gibi, "5GB-10GB"],
  [20 * gibi, "10GB-20GB"],
  [30 * gibi, "20GB-30GB"],
  [40 * gibi, "30GB-40GB"],
  [60 * gibi, "40GB-60GB"],
  [100 * gibi, "60GB-100GB"],
];

/** The label of an image's size; `N/A` if unknown. */
export function imageSizeRange(bytes: number): string {
  if (!(bytes > 0)) return "N/A";
  return ranges.find(([bound]) => bytes < bound)?.[1] ?? "GT100GB";
}
