import type { Pod } from "../../api/pod.ts";
import type { DnsConfig } from "./sandbox-config.ts";

/** The node's settings for pods' resolvers. */
export interface DnsSettings {
  /** KubeletConfiguration's clusterDNS. */
  readonly clusterDNS: readonly string[];
  /** KubeletConfiguration's clusterDomain; empty: none. */
  readonly clusterDomain: string;
  /**
   * Content of the node's resolver file; undefined when KubeletConfiguration's resolvConf is empty: pods get no
   * resolver.
   */
  readonly resolvConf: string | undefined;
  /** The node's addresses: they decide between 127.0.0.1 and ::1 when there is no resolver file. */
  readonly hostIPs: readonly string[];
}

/** A warning about a pod's resolver: reason and text of the event. */
export interface DnsProblem {
  readonly reason: "DNSConfigForming" | "MissingClusterDNS";
  readonly message: string;
  /** The text for the node's own event. */
  readonly nodeMessage?: string;
}

/** Limits of what is sent to the runtime (core validation). */
const maxNameservers = 3;
const maxSearches = 32;
const maxSearchCharacters = 2048;
/** glibc 2.28 aborts on a longer one. */
const maxSearchLength = 253;

/** Maximum size of the resolver file (upstream's dns.go). */
export const maxResolvConfBytes = 10 * 1024 * 1024;
/** Search domains of a cluster, which precede the node's. */
const clusterSearchCount = 3;

/**
 * Why pods cannot have all search domains of the node's resolver file, in upstream's words; undefined: they can. Pure.
 */
export function resolvConfProblem(path: string, text: string, clusterDomain: string): string | undefined {
  const { searches } = parseResolvConf(text);
  const count = maxSearches - (clusterDomain === "" ? 0 : clusterSearchCount);
  if (searches.length > count) {
    return `Resolv.conf file '${path}' contains search line consisting of more than ${count} domains!`;
  }
  if (searches.some(({ length }) => length > maxSearchLength)) {
    const problem = `contains a search path which length is more than allowed ${maxSearchLength} chars!`;
    return `Resolv.conf file "${path}" ${problem}`;
  }
  if (searches.join(" ").length <= maxSearchCharacters) return undefined;
  return `Resolv.conf file '${path}' contains search line which length is more than allowed ${maxSearchCharacters} chars!`;
}

type DnsConfigSpec = NonNullable<Pod["spec"]["dnsConfig"]>;

interface Resolver {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/** A pod's resolver by its dnsPolicy and dnsConfig, within resolvers' limits. */
export function podDns(
  pod: Pod,
  settings: DnsSettings,
): { readonly config: DnsConfig; readonly problems: DnsProblem[] } {
  const problems: DnsProblem[] = [];
  const base = baseResolver(pod, settings, problems);
  const { servers, searches, options } = pod.spec.dnsConfig === undefined ? base : addConfig(base, pod.spec.dnsConfig);
  return {
    config: {
      servers: limitServers(servers, problems),
      searches: limitSearches(searches, problems),
      options: [...options],
    },
    problems,
  };
}

/** Only here duplicates are dropped, as upstream: what the node's file repeats stays, and counts toward the limits. */
function addConfig(base: Resolver, { nameservers = [], searches = [], options = [] }: DnsConfigSpec): Resolver {
  return {
    servers: unique([...base.servers, ...nameservers]),
    searches: unique([...base.searches, ...searches]),
    options: mergeOptions(base.options, options),
  };
}

/**
 * Parses a resolver file: name servers accumulate, the last `search` line counts, a later option replaces an earlier
 * one of the same name. Trailing dots of search domains are dropped, so that none counts twice.
 */
export function parseResolvConf(text: string): Resolver {
  const servers: string[] = [];
  let searches: string[] = [];
  let options: readonly string[] = [];
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (keyword === "nameserver" && values[0] !== undefined) servers.push(values[0]);
    if (keyword === "search") searches = values.filter((domain) => domain !== ".").map(withoutFinalStop);
    if (keyword === "options") options = mergeOptions(options, values.map(splitOption));
  }
  return { servers, searches, options };
}

function baseResolver(pod: Pod, settings: DnsSettings, problems: DnsProblem[]): Resolver {
  const { dnsPolicy = "ClusterFirst", hostNetwork } = pod.spec;
  if (dnsPolicy === "None") return { servers: [], searches: [], options: [] };
  const host = settings.resolvConf === undefined ? withoutResolver(settings) : parseResolvConf(settings.resolvConf);
  const wantsCluster =
    dnsPolicy === "ClusterFirstWithHostNet" || (dnsPolicy === "ClusterFirst" && hostNetwork !== true);
  if (!wantsCluster) return host;
  if (settings.clusterDNS.length === 0) {
    const nodeMessage =
      'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. ' +
      'Falling back to "Default" policy.';
    problems.push({ reason: "MissingClusterDNS", message: `pod: "${describe(pod)}". ${nodeMessage}`, nodeMessage });
    return host;
  }
  return {
    servers: settings.clusterDNS,
    searches: clusterSearches(pod, settings),
    options: ["ndots:5"],
  };
}

/** The cluster's server forwards unknown names, so the node's search domains stay, and its servers are dropped. */
function clusterSearches(pod: Pod, { clusterDomain, resolvConf }: DnsSettings): string[] {
  const hostSearches = parseResolvConf(resolvConf ?? "").searches;
  if (clusterDomain === "") return [...hostSearches];
  return unique([
    `${pod.metadata.namespace}.svc.${clusterDomain}`,
    `svc.${clusterDomain}`,
    clusterDomain,
    ...hostSearches,
  ]);
}

/** The pod itself as name server, where none listens: lookups fail immediately. */
function withoutResolver({ hostIPs }: DnsSettings): Resolver {
  const servers = hostIPs.map((ip) => (ip.includes(":") ? "::1" : "127.0.0.1"));
  return { servers: servers.length === 0 ? ["127.0.0.1"] : servers, searches: ["."], options: [] };
}

function limitServers(servers: readonly string[], problems: DnsProblem[]): string[] {
  const kept = servers.slice(0, maxNameservers);
  if (kept.length < servers.length) {
    const message =
      "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ";
    problems.push({ reason: "DNSConfigForming", message: message + kept.join(" ") });
  }
  return kept;
}

function limitSearches(searches: readonly string[], problems: DnsProblem[]): string[] {
  const kept = searches.slice(0, maxSearches).filter((domain) => domain.length <= maxSearchLength);
  while (kept.join(" ").length > maxSearchCharacters) kept.pop();
  if (kept.length < searches.length) {
    const message =
      "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ";
    problems.push({ reason: "DNSConfigForming", message: message + kept.join(" ") });
  }
  return kept;
}

interface Option {
  readonly name?: string | undefined;
  readonly value?: string | undefined;
}

function mergeOptions(options: readonly string[], added: readonly Option[]): string[] {
  const merged = new Map<string, string>();
  for (const { name = "", value = "" } of [...options.map(splitOption), ...added]) merged.set(name, value);
  return [...merged].map(([name, value]) => (value === "" ? name : `${name}:${value}`));
}

function splitOption(option: string): Option {
  const colon = option.indexOf(":");
  return colon < 0 ? { name: option } : { name: option.slice(0, colon), value: option.slice(colon + 1) };
}

function withoutFinalStop(domain: string): string {
  return domain.endsWith(".") ? domain.slice(0, -1) : domain;
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

function describe({ metadata }: Pod): string {
  return `${metadata.name}_${metadata.namespace}(${metadata.uid})`;
}
