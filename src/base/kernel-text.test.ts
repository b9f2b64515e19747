import assert from "node:assert/strict";
import { test } from "node:test";
import {
  parseBootTime,
  parseMemInfo,
  parseNetDev,
  parseNumber,
  parseLimit,
  parseOpenFilesLimit,
  parseOwnCgroup,
  parsePressure,
  parseProcessStat,
  parseResidentBytes,
  parseTaskCount,
} from "./kernel-text.ts";

const netDev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 59977392    6655    0    0    0     0          0         0 59977392    6655    0    0    0     0       0          0
  eth0: 516150581   13289    1    2    0     0          0         0   592020    7744    3    4    0     0       0          0
vethd749c309:     612       8    0    0    0     0          0         0     3736      44    0    0    0     0       0          0
`;

test("interfaces to the outside are counted, the loopback and pods' other ends are not", () => {
  assert.deepEqual(parseNetDev(netDev), [
    {
      name: "eth0",
      rxBytes: 516_150_581,
      rxPackets: 13_289,
      rxErrors: 1,
      rxDropped: 2,
      txBytes: 592_020,
      txPackets: 7744,
      txErrors: 3,
      txDropped: 4,
    },
  ]);
  assert.deepEqual(parseNetDev(undefined), []);
});

test("the machine's figures are read from /proc", () => {
  const meminfo = parseMemInfo("MemTotal:       24684084 kB\nInactive(file): 5 kB\nHugePages_Total:       0\n");
  assert.equal(meminfo.get("MemTotal"), 25_276_502_016);
  assert.equal(meminfo.get("Inactive(file)"), 5120);
  assert.equal(meminfo.get("HugePages_Total"), 0);
  assert.equal(parseTaskCount("1.36 3.49 4.53 2/3518 3715089\n"), 3518);
  assert.equal(parseTaskCount("nonsense"), undefined);
  assert.equal(parseBootTime("cpu  1 2\nbtime 1795304864\nprocesses 1\n"), 1_795_304_864_000);
});

test("a process's fields are counted after its name, which may contain anything", () => {
  const stat =
    "19750 (a) R (b) c) R 19746 19633 7895 0 -1 4194304 96 0 5 0 12 30 0 0 20 0 1 0 183590 3133440 391 1844674407370955";
  assert.deepEqual(parseProcessStat(stat), {
    cpuNanoseconds: 420_000_000,
    virtualBytes: 3_133_440,
    pageFaults: 96,
    majorPageFaults: 5,
    startedMs: 1_835_900,
  });
  assert.equal(parseProcessStat("1 (x) S"), undefined);
});

test("a process's memory is in bytes, whatever the machine's page size", () => {
  const status = "Name:\tcontainerd\nVmHWM:\t   70000 kB\nVmRSS:\t   65536 kB\nThreads:\t9\n";
  assert.equal(parseResidentBytes(status), 65_536 * 1024);
  assert.equal(parseResidentBytes("Name:\tkthreadd\nThreads:\t1\n"), undefined);
});

test("a process's cgroup is that of the unified tree or of a controller", () => {
  const text = "12:cpu,cpuacct:/a\n7:memory:/b:c\n0::/d\n";
  assert.equal(parseOwnCgroup(text, undefined), "/d");
  assert.equal(parseOwnCgroup(text, "memory"), "/b:c");
  assert.equal(parseOwnCgroup(text, "cpuacct"), "/a");
  assert.equal(parseOwnCgroup(text, "pids"), undefined);
});

test("limits of open files and single numbers are parsed, and anything else is undefined", () => {
  const limits = (soft: string): string =>
    `Limit    Soft Limit   Hard Limit   Units\nMax open files   ${soft}   4096   files\n`;
  assert.equal(parseOpenFilesLimit(limits("1024")), 1024);
  assert.equal(parseOpenFilesLimit(limits("unlimited")), -1);
  assert.equal(parseOpenFilesLimit(""), undefined);
  assert.equal(
    parseLimit(`${limits("7")}Max address space     4194304    unlimited  bytes \n`, "address space"),
    4194304,
  );
  assert.equal(parseLimit(limits("7"), "address space"), undefined);
  assert.equal(parseNumber("-1\n"), -1);
  assert.equal(parseNumber("max\n"), undefined);
  assert.equal(parseNumber(""), undefined);
});

test("pressure without a full line has no full values, and a missing file gives no pressure", () => {
  const some = { total: 7, avg10: 1.5, avg60: 0, avg300: 0 };
  assert.deepEqual(parsePressure("some avg10=1.50 avg60=0.00 avg300=0.00 total=7\n"), {
    some,
    full: { total: 0, avg10: 0, avg60: 0, avg300: 0 },
  });
  assert.equal(parsePressure(undefined), undefined);
});
