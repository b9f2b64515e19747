import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readlinkSync } from "node:fs";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { needsRoot } from "../linux/processes/testing.ts";
import type { CommandResult, Processes } from "../ports/processes.ts";
import { silentLog } from "../sim/machine.ts";
import { UtilityChains } from "./utility-chains.ts";

const canary = "KUBE-KUBELET-CANARY";

/** A network namespace with its own tables, in which podwright finds either iptables. */
class Namespace implements Disposable {
  readonly #holder = spawn("unshare", ["--net", "sleep", "600"], { stdio: "ignore" });
  readonly #variant: string;

  constructor(variant: "nft" | "legacy") {
    this.#variant = variant;
  }

  async ready(): Promise<void> {
    const own = readlinkSync("/proc/self/ns/net");
    for (let tries = 0; tries < 200; tries++) {
      if (readlinkSync(`/proc/${this.#holder.pid}/ns/net`) !== own) return;
      await setTimeout(10);
    }
    throw new Error("no network namespace was made");
  }

  readonly processes: Pick<Processes, "run"> = {
    run: async (program, words, options) =>
      await systemProcesses.run("nsenter", [...this.#enter, `${program}-${this.#variant}`, ...words], options),
  };

  /** Rules of a table that concern the kubelet's chains. */
  rules(program: "iptables" | "ip6tables", table: string): string[] {
    const words = [...this.#enter, `${program}-${this.#variant}`, "-t", table, "-S"];
    const text = execFileSync("nsenter", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return text.split("\n").filter((line) => line.includes("KUBE"));
  }

  flush(tables: readonly string[]): void {
    for (const table of tables) {
      for (const flag of ["-F", "-X"]) {
        execFileSync("nsenter", [...this.#enter, `iptables-${this.#variant}`, "-t", table, flag]);
      }
    }
  }

  get #enter(): string[] {
    return [`--net=/proc/${this.#holder.pid}/ns/net`, "--"];
  }

  [Symbol.dispose](): void {
    this.#holder.kill("SIGKILL");
  }
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries++) {
    assert.ok(tries < 500, what);
    await setTimeout(20);
  }
}

const firewallRules = [
  "-N KUBE-FIREWALL",
  `-N ${canary}`,
  "-A INPUT -j KUBE-FIREWALL",
  "-A OUTPUT -j KUBE-FIREWALL",
  '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
];

for (const variant of ["nft", "legacy"] as const) {
  const title = `chains and rules are those of the Go kubelet, made once and again when they are gone, with ${variant}`;
  test(title, { skip: needsRoot() }, async () => {
    using namespace = new Namespace(variant);
    await namespace.ready();
    const clock = new ManualClock();
    const end = new AbortController();
    const chains = new UtilityChains({ clock, log: silentLog, processes: namespace.processes });
    const look = async (): Promise<void> => await until("the chains to be looked at", () => clock.waits.length === 2);
    const whole = (): void => {
      assert.deepEqual(namespace.rules("iptables", "filter"), firewallRules);
      assert.deepEqual(namespace.rules("iptables", "mangle"), ["-N KUBE-IPTABLES-HINT", `-N ${canary}`]);
      assert.deepEqual(namespace.rules("iptables", "nat"), [`-N ${canary}`]);
      assert.deepEqual(namespace.rules("ip6tables", "mangle"), ["-N KUBE-IPTABLES-HINT", `-N ${canary}`]);
      assert.deepEqual(namespace.rules("ip6tables", "filter"), [`-N ${canary}`]);
    };
    const running = chains.run(end.signal);
    await look();
    whole();
    await clock.advance(60_000);
    await look();
    whole();
    for (const tables of [["mangle", "nat", "filter"], ["filter"], ["nat"]]) {
      namespace.flush(tables);
      await clock.advance(60_000);
      await look();
      whole();
    }
    end.abort();
    await running;
    // The next run keeps existing chains and rules.
    const next = new AbortController();
    const again = new UtilityChains({ clock, log: silentLog, processes: namespace.processes }).run(next.signal);
    await look();
    whole();
    next.abort();
    await again;
  });
}

/** A machine whose iptables give prepared answers, by the first word after the table. */
class Machine {
  readonly clock = new ManualClock();
  readonly told: string[] = [];
  readonly ran: string[] = [];
  answer: (words: readonly string[]) => Partial<CommandResult> = () => ({});
  readonly #end = new AbortController();
  readonly #running: Promise<void>;

  constructor(answer: Machine["answer"]) {
    this.answer = answer;
    const tell = (text: string): void => void this.told.push(text);
    const processes: Pick<Processes, "run"> = {
      run: async (program, words) => {
        this.ran.push([program, ...words.slice(4)].join(" "));
        return { exitCode: 0, signal: undefined, stdout: "", stderr: "", ...this.answer([program, ...words.slice(4)]) };
      },
    };
    const log = { ...silentLog, info: tell, warn: tell };
    this.#running = new UtilityChains({ clock: this.clock, log, processes }).run(this.#end.signal);
  }

  async end(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }
}

test("without iptables there is one log line, and no retry", async () => {
  const machine = new Machine(() => {
    throw new Error("spawn iptables ENOENT");
  });
  await machine.clock.advance(600_000);
  assert.deepEqual(machine.told, ["no iptables support on this system; not creating the KUBE-IPTABLES-HINT chain"]);
  await machine.end();
});

test("a lock that another program holds at the start is waited for", async () => {
  const machine = new Machine(() => ({ exitCode: 4, stderr: "Another app holds the lock" }));
  await machine.clock.advance(0);
  machine.answer = () => ({});
  await machine.clock.advance(60_000);
  assert.deepEqual(machine.told.slice(-2), ["initialized iptables rules", "initialized iptables rules"]);
  await machine.end();
});

test("iptables that is removed is told once, and used again when it is back", async () => {
  const machine = new Machine(() => ({}));
  await machine.clock.advance(0);
  machine.answer = () => {
    throw new Error("spawn iptables ENOENT");
  };
  await machine.clock.advance(180_000);
  machine.answer = ([, flag]) => ({ exitCode: flag === "-S" ? 1 : 0 });
  await machine.clock.advance(60_000);
  const both = (text: string): string[] => [text, text];
  assert.deepEqual(machine.told, [
    ...both("initialized iptables rules"),
    ...both("cannot create iptables rules"),
    ...both("recreated missing iptables rules"),
  ]);
  await machine.end();
});

test("a family that the kernel lacks is skipped", async () => {
  const machine = new Machine(([program]) => (program === "ip6tables" ? { exitCode: 3 } : {}));
  await machine.clock.advance(0);
  assert.deepEqual(machine.told, ["initialized iptables rules"]);
  assert.deepEqual(
    machine.ran.filter((line) => line.startsWith("ip6tables")),
    ["ip6tables -S POSTROUTING"],
  );
  await machine.end();
});

test("a failure is logged once and retried each minute", async () => {
  const machine = new Machine(([, flag]) =>
    flag === "-N" ? { exitCode: 4, stderr: "Another app holds the lock" } : {},
  );
  await machine.clock.advance(180_000);
  assert.deepEqual(machine.told, ["cannot create iptables rules", "cannot create iptables rules"]);
  machine.answer = () => ({});
  await machine.clock.advance(60_000);
  assert.deepEqual(machine.told.slice(2), ["initialized iptables rules", "initialized iptables rules"]);
  await machine.end();
});
