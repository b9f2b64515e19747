/**
 * Parses a list of processors like `0-3,8` (the kernel's List Format; upstream's cpuset.Parse).
 * @throws Error whose message completes "… can't be read: "
 */
export function parseCpuList(list: string): Set<number> {
  if (list === "") return new Set();
  return new Set(
    list.split(",").flatMap((part) => {
      const [, first, last = first] = /^(\d{1,6})(?:-(\d{1,6}))?$/u.exec(part) ?? [];
      const [from, to] = [Number(first), Number(last)];
      if (first === undefined) throw new Error("expected a list such as 0-3,8");
      if (from > to) throw new Error(`invalid range ${JSON.stringify(part)} (${from} > ${to})`);
      return Array.from({ length: to - from + 1 }, (_, index) => from + index);
    }),
  );
}
