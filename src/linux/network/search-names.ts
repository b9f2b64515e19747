import { hostname } from "node:os";

/** What /etc/resolv.conf says of names that are not complete. */
export interface SearchRules {
  readonly domains: readonly string[];
  /** Names with as many dots are asked for as they are first. */
  readonly ndots: number;
}

const mostDots = 15;
/** Longest name in DNS, without its last dot. */
const longestName = 253;

/**
 * Parses resolv.conf as Go's resolver does: of several `search` or `domain` lines the last one counts; without one, the
 * domain of the machine's own name. Pure.
 * @param own the machine's name
 */
export function parseSearchRules(text: string, own: string = hostname()): SearchRules {
  const dot = own.indexOf(".");
  let domains = dot < 0 ? [] : [own.slice(dot + 1)];
  let ndots = 1;
  for (const line of text.split("\n")) {
    const [keyword = "", ...words] = line
      .replace(/[#;].*$/u, "")
      .trim()
      .split(/\s+/u);
    if (keyword === "search") domains = words;
    else if (keyword === "domain" && words.length > 0) domains = words.slice(0, 1);
    else if (keyword === "options") {
      const count = words.findLast((word) => /^ndots:\d+$/u.test(word));
      if (count !== undefined) ndots = Math.min(Number(count.slice("ndots:".length)), mostDots);
    }
  }
  return { domains: domains.map((domain) => domain.replace(/\.$/u, "")).filter((domain) => domain !== ""), ndots };
}

/** The names to ask for, in order, until one has an address. Pure. @param name with a dot at its end: complete */
export function searchNames(name: string, { domains, ndots }: SearchRules): readonly string[] {
  if (name.endsWith(".")) return [name.slice(0, -1)];
  const suffixed = domains.map((domain) => `${name}.${domain}`).filter((full) => full.length <= longestName);
  return name.split(".").length > ndots ? [name, ...suffixed] : [...suffixed, name];
}
