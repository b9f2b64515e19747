import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { PodView } from "../../../src/server/local-api.ts";
import { until } from "../../support/podwright.ts";
import { run } from "../machine.ts";

/** Where run.sh puts the packages. */
export const packages = "/podwright/packages";
/** What `podwright enable` starts. */
export const service = "podwright.service";

const requestFile = "/var/tmp/reboot";
const memoryFile = "/var/tmp/podwright-packages-test.json";

interface Memory {
  readonly traces: readonly string[];
  readonly containers: readonly string[];
}

/** What the run before the machine's restart kept for the one after it; undefined before. */
export const remembered = existsSync(memoryFile) ? (JSON.parse(readFileSync(memoryFile, "utf8")) as Memory) : undefined;

/** Runs only on this side of the machine's restart; a test that is left out would be reported as skipped. */
export function testOf(side: "before" | "after", title: string, body: () => Promise<void>): void {
  if (side === (remembered === undefined ? "before" : "after")) test(title, body);
}

/** Has the machine restarted once the tests have ended. */
export function restartWith(memory: Memory): void {
  writeFileSync(memoryFile, JSON.stringify(memory));
  writeFileSync(requestFile, "");
}

/** Directories of which systemd, dpkg and the runtime of the machine change files by themselves. */
const restless = [
  ...["/dev", "/podwright", "/proc", "/run", "/sys", "/tmp", "/var/cache", "/var/lib/containerd", "/var/lib/dpkg"],
  ...["/var/lib/private", "/var/lib/systemd", "/var/log/journal", "/var/tmp", "/boot"],
];

/** Files, units, mounts, cgroups, iptables rules and network interfaces of the machine, one a line. */
export function machineTraces(): string[] {
  const prune = restless.map((path) => `-path ${path}`).join(" -o ");
  const commands = {
    file: `find / \\( ${prune} \\) -prune -o -print; find /run -maxdepth 1; find /var/log -name '*pod*'`,
    unit: "systemctl list-unit-files --no-legend --no-pager | awk '{ print $1, $2 }'",
    mount: "awk '{ print $2, $3 }' /proc/mounts",
    cgroup: "find /sys/fs/cgroup -type d",
    // A table that was looked at shows its own chains.
    rule: "(iptables-save; ip6tables-save) | grep -- '^[-:]' | grep -v ' ACCEPT ' | sed 's/ \\[.*//'",
    interface: "ls /sys/class/net",
  };
  return Object.entries(commands).flatMap(([kind, command]) =>
    run("sh", ["-c", command])
      .split("\n")
      .filter((line) => line !== "" && !isTransient(line))
      .map((line) => `${kind} ${line}`),
  );
}

/** Of a program that ran for a moment, or of what systemd starts on demand. */
function isTransient(line: string): boolean {
  return /\/(?:system\.slice\/(?:systemd-|run-|getty|serial|user@|modprobe)|user\.slice|init\.scope)|\.pid$|systemd-/u.test(
    line,
  );
}

/** What is there now and was not, and the reverse. */
export function changes(before: readonly string[], now: readonly string[]): string[] {
  const [old, current] = [new Set(before), new Set(now)];
  return [
    ...now.filter((line) => !old.has(line)).map((line) => `new: ${line}`),
    ...before.filter((line) => !current.has(line)).map((line) => `gone: ${line}`),
  ];
}

/** A command of the installed podwright, which has to succeed. */
export function podwright(...words: readonly string[]): string {
  return run("podwright", words);
}

/** IDs of the pod's containers once it is ready. */
export async function readyContainers(name: string): Promise<string[]> {
  let ids: string[] = [];
  const isReady = async (): Promise<boolean> => {
    const { pods } = JSON.parse(podwright("ps", "--json")) as { readonly pods: readonly PodView[] };
    const pod = pods.find((candidate) => candidate.name === name);
    ids = pod?.containers.map(({ id }) => id) ?? [];
    return pod?.ready === true;
  };
  await until(`${name} to be ready`, isReady);
  return ids;
}

/** Seconds since the machine's start. */
export function uptime(): number {
  return Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
}

export function serviceState(): string {
  return run("sh", ["-c", `systemctl is-active ${service} || true`]);
}
