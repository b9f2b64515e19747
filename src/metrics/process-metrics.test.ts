import assert from "node:assert/strict";
import { test } from "node:test";
import { processFamilies, processPaths } from "./process-metrics.ts";

test("a process's memory is the kernel's figure in bytes", () => {
  const texts: Readonly<Record<string, string>> = { "/proc/self/status": "VmRSS:\t   65536 kB\n" };
  const families = processFamilies(
    processPaths.map((path) => texts[path]),
    undefined,
  );
  const memory = families.find(({ name }) => name === "process_resident_memory_bytes");
  assert.deepEqual(memory?.samples, [{ labels: [], value: 65_536 * 1024 }]);
});
