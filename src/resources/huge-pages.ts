import { type Quantity, readQuantity } from "./quantity.ts";

const prefix = "hugepages-";

/** The page size of a resource like `hugepages-2Mi`, in bytes; undefined for any other resource. */
export function pageSizeOf(resource: string): bigint | undefined {
  if (!resource.startsWith(prefix)) return undefined;
  return readQuantity(resource.slice(prefix.length))?.value();
}

/** A resource list's huge pages: bytes by page size. */
export function hugePageAmounts(list: Iterable<readonly [string, Quantity]>): Map<bigint, bigint> {
  const amounts = new Map<bigint, bigint>();
  for (const [name, amount] of list) {
    const size = pageSizeOf(name);
    if (size !== undefined) amounts.set(size, amount.value());
  }
  return amounts;
}

/** A page size in the kernel's notation: `2MB`, `1GB`, `64KB`. */
export function formatPageSize(bytes: bigint): string {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let size = bytes;
  let index = 0;
  while (size >= 1024n && size % 1024n === 0n && index < units.length - 1) {
    size /= 1024n;
    index++;
  }
  return `${size}${units[index]}`;
}
