import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { CriRuntimeService } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { CommandResult, Processes } from "../ports/processes.ts";

/**
 * What podwright does about the firewall: CNI's plugins make the rules that pods need, podwright adds one that they leave
 * open, and takes away those that name sandboxes which are no more. CNI plugins take theirs away with the sandbox; but one that
 * is killed while it adds them, because podwright was killed while the sandbox was being made, may leave some: they
 * would lead a host port to an address that another pod gets.
 */

const tables = ["nat", "filter"] as const;
const timeoutMs = 30_000;
/** A sandbox that is being made when podwright is killed is there or gone by then. */
const settleMs = 15_000;

export interface FirewallDeps {
  readonly processes: Pick<Processes, "run">;
  /** Absolute path of iptables; iptables-save and iptables-restore are beside it. */
  readonly iptables: string;
  /** The CNI network's name, which the plugins write into their rules. */
  readonly network: string;
}

/** Ids of the sandboxes that rules of the network name. */
export async function sandboxesInRules(deps: FirewallDeps): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (const table of tables) {
    for (const rule of rulesOf(await saved(deps, table), deps.network)) ids.add(rule.sandbox);
  }
  return ids;
}

/**
 * Removes the network's rules of removed sandboxes, and the chains that only those used; returns the IDs. Each table is
 * changed in one step: all rules or none.
 * @throws Error if iptables fails, e.g. because another program changed the same rules
 */
export async function removeStaleRules(deps: FirewallDeps, isGone: (sandbox: string) => boolean): Promise<string[]> {
  const removed = new Set<string>();
  for (const table of tables) {
    const stale = rulesOf(await saved(deps, table), deps.network).filter(({ sandbox }) => isGone(sandbox));
    if (stale.length === 0) continue;
    const stdin = removalOf(table, stale);
    const { exitCode, stderr } = await deps.processes.run(`${deps.iptables}-restore`, ["--noflush"], {
      timeoutMs,
      stdin,
    });
    if (exitCode !== 0) throw new Error(`${deps.iptables}-restore: ${stderr.trim()}`);
    for (const { sandbox } of stale) removed.add(sandbox);
  }
  return [...removed];
}

/**
 * Keeps pods off what listens on the node's own loopback addresses. A host port on 127.0.0.1 makes CNI's portmap plugin
 * turn on route_localnet for the bridge, from where such addresses were unreachable until then (CVE-2020-8558). Answers
 * to connections that the node itself made to a pod pass. May be called again.
 * @throws PodwrightError (environment) when iptables refuses
 */
export async function closeLoopback(deps: FirewallDeps, bridge: string): Promise<void> {
  if (await hasRule(deps, bridge)) return;
  const { exitCode, stderr } = await changeInput(deps, "-I", bridge);
  if (exitCode === 0) return;
  throw new PodwrightError(ExitCode.environment, `iptables rejects a rule for the pods' bridge: ${stderr.trim()}`, {
    remedy: "load the kernel modules xt_conntrack and xt_comment, or install a newer iptables",
  });
}

/** Takes back {@link closeLoopback}. */
export async function openLoopback(deps: FirewallDeps, bridge: string): Promise<void> {
  while (await hasRule(deps, bridge)) {
    const { exitCode, stderr } = await changeInput(deps, "-D", bridge);
    if (exitCode !== 0) throw new Error(`${deps.iptables} -D INPUT: ${stderr.trim()}`);
  }
}

async function hasRule(deps: FirewallDeps, bridge: string): Promise<boolean> {
  return (await changeInput(deps, "-C", bridge)).exitCode === 0;
}

async function changeInput(deps: FirewallDeps, command: "-C" | "-D" | "-I", bridge: string): Promise<CommandResult> {
  const comment = ["-m", "comment", "--comment", `${deps.network}: pods cannot reach loopback addresses`];
  const answers = ["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT"];
  const rule = ["-i", bridge, "-d", "127.0.0.0/8", ...comment, ...answers, "-j", "DROP"];
  return await deps.processes.run(deps.iptables, ["-w", command, "INPUT", ...rule], { timeoutMs });
}

/** Removes what lives before this one left, once what was being made then is there or gone. Never rejects. */
export async function sweepFirewall(
  deps: FirewallDeps & {
    readonly clock: Clock;
    readonly log: Logger;
    readonly runtime: Pick<CriRuntimeService, "listPodSandbox">;
  },
  signal: AbortSignal,
): Promise<void> {
  try {
    const early = await sandboxesInRules(deps);
    await deps.clock.sleep("sandboxes of an earlier run to be created", settleMs, signal);
    const { items } = await deps.runtime.listPodSandbox({}, { signal, timeoutMs });
    const present = new Set(items.map(({ id }) => id));
    const removed = await removeStaleRules(deps, (id) => early.has(id) && !present.has(id));
    if (removed.length > 0) deps.log.info("removed firewall rules of sandboxes that are gone", { sandboxes: removed });
  } catch (error) {
    if (!signal.aborted) deps.log.warn("cannot check for stale firewall rules", { error: errorMessage(error) });
  }
}

interface Rule {
  readonly chain: string;
  /** As iptables-save writes it, after `-A`. */
  readonly text: string;
  readonly sandbox: string;
  readonly target: string;
}

/** The rules in which CNI's plugins wrote the network's name, e.g. `--comment "dnat name: \"podwright\" id: \"4f…\""`. */
function rulesOf(text: string, network: string): Rule[] {
  return text.split("\n").flatMap((line) => {
    const [, rule, chain] = /^-A ((\S+) .*)$/.exec(line) ?? [];
    const [, name, sandbox] = /name: \\"([^"\\]+)\\" id: \\"([0-9a-f]+)\\"/.exec(line) ?? [];
    if (rule === undefined || chain === undefined || sandbox === undefined || name !== network) return [];
    return [{ chain, text: rule, sandbox, target: / -j (\S+)/.exec(line)?.[1] ?? "" }];
  });
}

/** Chains of one sandbox; those that all share have names in capitals. */
const isOwnChain = (chain: string): boolean => /^CNI-(?:DN-|SN-)?[0-9a-f]{16,}$/.test(chain);

/** Input for iptables-restore: the rules that lead to the sandboxes' own chains, then those chains. */
function removalOf(table: string, stale: readonly Rule[]): string {
  const shared = stale.filter(({ chain }) => !isOwnChain(chain));
  const own = new Set(stale.flatMap(({ chain, target }) => [chain, target]).filter(isOwnChain));
  const chains = [...own];
  return [
    `*${table}`,
    ...shared.map(({ text }) => `-D ${text}`),
    ...chains.map((chain) => `-F ${chain}`),
    ...chains.map((chain) => `-X ${chain}`),
    "COMMIT\n",
  ].join("\n");
}

async function saved({ processes, iptables }: FirewallDeps, table: string): Promise<string> {
  const { exitCode, stdout, stderr } = await processes.run(`${iptables}-save`, ["-t", table], { timeoutMs });
  if (exitCode !== 0) throw new Error(`${iptables}-save -t ${table}: ${stderr.trim()}`);
  return stdout;
}
