import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { checkReservedProcessors } from "./reserved-processors.ts";

test("processors that are reserved by number must exist", async () => {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/sys/devices/system/cpu", 0o755);
  await checkReservedProcessors(files, "0-99");
  await files.write("/sys/devices/system/cpu/online", "0-1,4\n", 0o444);
  await checkReservedProcessors(files, undefined);
  await checkReservedProcessors(files, "0,4");
  await assert.rejects(checkReservedProcessors(files, "0-2"), {
    exitCode: 2,
    message: "reserved-cpus: 0-2 is not a subset of online-cpus: 0-1,4",
    remedy: "set reservedSystemCPUs (--reserved-cpus) to CPUs of this machine",
  });
});
