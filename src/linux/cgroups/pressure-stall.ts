import { readFile } from "node:fs/promises";
import type { PressureStall } from "../../ports/pressure-stall.ts";

const paths = ["/proc/pressure/cpu", "/proc/pressure/io"];

/** By the kernel's pressure stall information (Documentation/accounting/psi.rst), which not every kernel has. */
export const systemPressureStall: PressureStall = {
  stalledMs: async () => {
    const texts = await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => undefined)));
    const totals = texts.flatMap((text) => /^some .*total=(\d+)$/m.exec(text ?? "")?.[1] ?? []);
    return totals.length === 0 ? undefined : totals.reduce((sum, total) => sum + Number(total), 0) / 1000;
  },
};
