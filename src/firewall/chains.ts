/** IP version of a table of rules. */
export type Family = 4 | 6;

export interface Chain {
  readonly table: "mangle" | "nat" | "filter";
  readonly chain: string;
}

export interface WantedRule extends Chain {
  /** Before all others of the chain; otherwise behind them. */
  readonly first: boolean;
  readonly rule: readonly string[];
}

/** By its tables others tell whether the machine's rules are nft's or legacy's. */
const hint = "KUBE-IPTABLES-HINT";
const firewall = "KUBE-FIREWALL";
const canaryChain = "KUBE-KUBELET-CANARY";

/** Stands as long as nobody has flushed the table. */
export const canaries: readonly Chain[] = (["mangle", "nat", "filter"] as const).map((table) => {
  return { table, chain: canaryChain };
});

/** The chain whose absence means that the rules are gone. */
export const canary: Chain = { table: "mangle", chain: canaryChain };

/** Chains of the Go kubelet's names, in the order in which they are made. */
export function wantedChains(family: Family): readonly Chain[] {
  const own = [{ table: "mangle", chain: hint } as const];
  return family === 6 ? own : [...own, { table: "filter", chain: firewall }];
}

/**
 * Rules of the Go kubelet, word for word, since kube-proxy makes the same: nothing from elsewhere reaches what listens on the
 * loopback alone, though route_localnet lets it pass (CVE-2020-8558). IPv6 has no such thing.
 */
export function wantedRules(family: Family): readonly WantedRule[] {
  if (family === 6) return [];
  const jump = ["-j", firewall];
  const martians = [
    ...["-m", "comment", "--comment", "block incoming localnet connections"],
    ...["--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8"],
    ...["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"],
  ];
  return [
    { table: "filter", chain: "OUTPUT", first: true, rule: jump },
    { table: "filter", chain: "INPUT", first: true, rule: jump },
    { table: "filter", chain: firewall, first: false, rule: martians },
  ];
}
