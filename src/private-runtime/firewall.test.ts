import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommandResult } from "../ports/processes.ts";
import { closeLoopback, openLoopback, removeStaleRules } from "./firewall.ts";

const comment = (network: string, id: string, prefix = ""): string =>
  String.raw`-m comment --comment "${prefix}name: \"${network}\" id: \"${id}\""`;
const chain = (letter: string): string => `CNI-${letter.repeat(24)}`;

const nat = `*nat
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -s 10.88.1.2/32 ${comment("podwright", "aa01")} -j ${chain("a")}
-A POSTROUTING -s 10.88.1.3/32 ${comment("podwright", "bb02")} -j ${chain("b")}
-A POSTROUTING -s 10.99.1.2/32 ${comment("podwright-0123abcd", "cc03")} -j ${chain("c")}
-A ${chain("a")} -d 10.88.1.0/24 ${comment("podwright", "aa01")} -j ACCEPT
-A ${chain("b")} -d 10.88.1.0/24 ${comment("podwright", "bb02")} -j ACCEPT
-A CNI-DN-${"b".repeat(21)} -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.88.1.3:80
-A CNI-HOSTPORT-DNAT -p tcp ${comment("podwright", "bb02", "dnat ")} -m multiport --dports 8080 -j CNI-DN-${"b".repeat(21)}
COMMIT
`;

/** An iptables that only records its input. */
function fakeIptables(restoreExitCode = 0): { readonly told: string[]; readonly run: () => Promise<CommandResult> } {
  const told: string[] = [];
  const run = async (program: string, words: readonly string[] = [], options?: { readonly stdin?: string }) => {
    if (program.endsWith("-restore")) told.push(options?.stdin ?? "");
    const stdout = program.endsWith("-save") && words.includes("nat") ? nat : "";
    const exitCode = program.endsWith("-restore") ? restoreExitCode : 0;
    return { exitCode, signal: undefined, stdout, stderr: "line 2 failed" };
  };
  return { told, run: run as () => Promise<CommandResult> };
}

test("rules and chains of a removed sandbox are deleted, and those of others stay", async () => {
  const iptables = fakeIptables();
  const deps = { processes: iptables, iptables: "/sbin/iptables", network: "podwright" };
  assert.deepEqual(await removeStaleRules(deps, (id) => id === "bb02"), ["bb02"]);
  const own = [chain("b"), `CNI-DN-${"b".repeat(21)}`];
  assert.deepEqual(iptables.told, [
    [
      "*nat",
      `-D POSTROUTING -s 10.88.1.3/32 ${comment("podwright", "bb02")} -j ${own[0]}`,
      `-D CNI-HOSTPORT-DNAT -p tcp ${comment("podwright", "bb02", "dnat ")} -m multiport --dports 8080 -j ${own[1]}`,
      ...own.map((name) => `-F ${name}`),
      ...own.map((name) => `-X ${name}`),
      "COMMIT\n",
    ].join("\n"),
  ]);
});

test("without stale rules nothing is changed, and other networks' rules never are", async () => {
  const iptables = fakeIptables();
  const deps = { processes: iptables, iptables: "/sbin/iptables", network: "podwright" };
  assert.deepEqual(await removeStaleRules(deps, (id) => id === "cc03"), []);
  assert.deepEqual(iptables.told, []);
});

test("an iptables failure is reported with its message", async () => {
  const deps = { processes: fakeIptables(1), iptables: "/sbin/iptables", network: "podwright" };
  await assert.rejects(
    removeStaleRules(deps, () => true),
    /iptables-restore: line 2 failed/,
  );
});

test("the loopback is closed to pods once, and opened again however often it was closed", async () => {
  let rules = 0;
  const told: string[] = [];
  const run = async (_program: string, words: readonly string[]): Promise<CommandResult> => {
    const command = words[1] ?? "";
    if (command !== "-C") told.push(words.join(" "));
    if (command === "-I") rules++;
    const exitCode = command === "-I" || rules > 0 ? 0 : 1;
    if (command === "-D") rules--;
    return { exitCode, signal: undefined, stdout: "", stderr: "" };
  };
  const deps = { processes: { run }, iptables: "/sbin/iptables", network: "podwright" };
  await closeLoopback(deps, "podwright0");
  await closeLoopback(deps, "podwright0");
  assert.equal(told.length, 1);
  assert.match(
    told[0] ?? "",
    /^-w -I INPUT -i podwright0 -d 127\.0\.0\.0\/8 .* ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP$/,
  );
  rules = 2;
  await openLoopback(deps, "podwright0");
  assert.equal(rules, 0);
});

test("an iptables that rejects such a rule is reported with a remedy", async () => {
  const refused = { exitCode: 1, signal: undefined, stdout: "", stderr: "Couldn't load match `conntrack'" };
  const deps = { processes: { run: async () => refused }, iptables: "/sbin/iptables", network: "podwright" };
  await assert.rejects(closeLoopback(deps, "podwright0"), {
    name: "PodwrightError",
    message: /load match `conntrack'/,
  });
});
