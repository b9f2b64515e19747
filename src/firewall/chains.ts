/** IP version of a table of rules. */
export type Family = 4 | 6;

export interface Chain {
  readonly table: "mangle" | "nat" | "filter";
  readonly chain: string;
}

export interface WantedRule extends Chain {
  /** At the beginning of the chain; otherwise appended. */
  readonly first: boolean;
  readonly rule: readonly string[];
}

/** Its presence in a backend's tables shows other programs whether the machine uses nft or legacy iptables. */
const hint = "KUBE-IPTABLES-HINT";
const firewall = "KUBE-FIREWALL";
const canaryChain = "KUBE-KUBELET-CANARY";

/** Present as long as their tables have not been flushed: the absence of one means that rules are gone. */
export const canaries: readonly Chain[] = (["mangle", "nat", "filter"] as const).map((table) => {
  return { table, chain: canaryChain };
});

/** Chains with the Go kubelet's names, in creation order. */
export function wantedChains(family: Family): readonly Chain[] {
  const own = [{ table: "mangle", chain: hint } as const];
  return family === 6 ? own : [...own, { table: "filter", chain: firewall }];
}

/**
 * The Go kubelet's rules, verbatim, because kube-proxy creates the same: other machines cannot reach loopback
 * listeners, although route_localnet would allow it (CVE-2020-8558). IPv6 does not need this.
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
