import { readFileSync } from "node:fs";
import type { PressureStall } from "../../ports/pressure-stall.ts";

const paths = ["/proc/pressure/cpu", "/proc/pressure/io"];

/** The kernel's pressure stall information (Documentation/accounting/psi.rst); not every kernel has it. */
export const systemPressureStall: PressureStall = {
  stalledMs: async () => {
    const totals = paths.flatMap((path) => /^some .*total=(\d+)$/m.exec(pressure(path))?.[1] ?? []);
    return totals.length === 0 ? undefined : totals.reduce((sum, total) => sum + Number(total), 0) / 1000;
  },
};

/** Synchronous, because it is read from kernel memory: another thread would take ten times as long. */
function pressure(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
